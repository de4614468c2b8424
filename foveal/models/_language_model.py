"""A language model: how likely is a text, and what comes next?

    p(y) = prod over t of p(y_t | y_<t)

It is a decoder that knows of no source. A text too long for one pass is read in pieces, each from
the state of the one before (truncated back-propagation through time: gradients end where a piece
begins, since `detached` cuts them).

References: Mikolov et al. 2010; Zaremba et al. 2014; Press and Wolf 2017 (tied tables).

Axes: B items of a batch, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from ..attention import Memory
from ..errors import ValueRangeError
from ..networks import DecoderState, DecoderStepper, NoBridge, PlainDecoder
from ..networks.decoders._decoder import TokenLosses, Unrolled
from ..networks.search._stepping_state import SteppingState
from ..specs import check, setting
from ._checks import check_sizes, checked_tokens
from .parts._recurrent_spec import AbstractRecurrentSpec


@final
class LanguageModel(nn.Module):
    """Tokens in, log-probabilities of the next out.

    >>> model = LanguageModelSpec().build(vocabulary=40)
    >>> model(torch.randint(40, (2, 5))).log_probs.shape
    torch.Size([2, 5, 40])
    """

    def __init__(self, decoder: PlainDecoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        """Log-probabilities of every token after each of `tokens`, the begin symbol first."""
        with checked_tokens("LanguageModel", self.num_tokens, mask, tokens=tokens):
            return self.decoder.unroll(tokens, self._no_memory(tokens.shape[:-1]), mask, state)

    def score(
        self,
        tokens: Int[Tensor, "B T"],
        targets: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
        state: DecoderState | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> TokenLosses:
        """The loss of each target, which should come after the token at its place, read from `state`
        on; the state after the last is part of the result.
        """
        memory = self._no_memory(tokens.shape[:-1])
        with checked_tokens("LanguageModel", self.num_tokens, mask, tokens=tokens, targets=targets):
            return self.decoder.score(
                tokens, targets, memory, mask, state, label_smoothing=label_smoothing
            )

    def stepper(self) -> DecoderStepper:
        """Steps for search, prepared from the weights as they are now; the model is in `eval()`."""
        return DecoderStepper(self.decoder)

    @torch.no_grad()
    def start(self, batch_size: int) -> SteppingState:
        """The state of a search before its first token, one hypothesis for each item."""
        return self.stepper().start(self._no_memory([batch_size]))

    @property
    def num_tokens(self) -> int:
        """How many tokens there are."""
        return self.decoder.embedding.num_embeddings

    def _no_memory(self, batch: Sequence[int]) -> Memory:
        like = self.decoder.embedding.weight
        return Memory(like.new_zeros(*batch, 0, 0), summary=like.new_zeros(*batch, 0))


def detached(state: DecoderState) -> DecoderState:
    """The state without its history: no gradient goes back beyond it."""
    return state.map(Tensor.detach)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelSpec(AbstractRecurrentSpec):
    """How likely is a text, and what comes next?"""

    kind: Literal["language_model"] = "language_model"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    tie_embeddings: bool = setting(False, "the output layer shares the table of the embeddings")

    def build(self, *, vocabulary: int) -> LanguageModel:
        """Build the model with fresh weights for so many tokens."""
        check(self)
        check_sizes("LanguageModel", vocabulary=vocabulary)
        if self.tie_embeddings and self.embedding_size != self.hidden_size:
            raise ValueRangeError(
                f"LanguageModelSpec: tie_embeddings needs embedding_size and hidden_size to be equal, got "
                f"{self.embedding_size} and {self.hidden_size}. Set embedding_size to "
                f"{self.hidden_size}, or tie_embeddings to false."
            )
        decoder = PlainDecoder(
            embedding=nn.Embedding(vocabulary, self.embedding_size),
            stack=self.stack(self.embedding_size),
            bridge=NoBridge(),
            tie_embeddings=self.tie_embeddings,
            dropout=self.dropout,
        )
        return LanguageModel(decoder)
