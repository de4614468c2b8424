"""Language model: the probability of a text, and of its next token.

    p(y) = prod over t of p(y_t | y_<t)

The model is a decoder without a source: a recurrent network, or a causal Transformer. A long text is processed in
chunks, each from the final state of the previous one (truncated backpropagation through time: `detached` stops
gradients at the start of a chunk).

References: Mikolov et al. 2010; Zaremba et al. 2014; Press and Wolf 2017 (tied tables).

Axes: B items of a batch, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from ..attention import Attended, Memory
from ..errors import ValueRangeError
from ..networks import (
    CausalTransformer,
    DecoderState,
    DecoderStepper,
    LearnedStateBridge,
    NoBridge,
    PlainDecoder,
)
from ..networks.decoders._steps import TokenLosses, Unrolled
from ..networks.search._stepping_state import SteppingState
from ..specs import check, setting
from ._checks import check_sizes, checked_tokens
from .parts._recurrent_spec import AbstractRecurrentSpec


@final
class LanguageModel(nn.Module):
    """Computes log-probabilities of the next token.

    Args:
        decoder: Decoder without a source: a `PlainDecoder` with `NoBridge` or `LearnedStateBridge`, or a
            `CausalTransformer`.

    Examples:
        >>> model = LanguageModelSpec().build(vocabulary=40)
        >>> model(torch.randint(40, (2, 5))).log_probs.shape
        torch.Size([2, 5, 40])
    """

    def __init__(self, decoder: PlainDecoder | CausalTransformer) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        """Compute log-probabilities of the next token after each of `tokens`.

        Args:
            tokens: Token ids to read, the begin symbol first.
            mask: True on real tokens; None if all tokens are real.
            state: State before the first token, for example after the previous chunk; defaults to the initial state.

        Returns:
            The log-probabilities of the token after each token, and the final state.
        """
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
        """Compute the loss of each target, given the token at the same position and all tokens before it.

        Args:
            tokens: Token ids to read, the begin symbol first.
            targets: Token ids to predict; `targets[t]` follows `tokens[t]`.
            mask: True on real tokens; None if all tokens are real.
            state: State before the first token, for example after the previous chunk; defaults to the initial state.
            label_smoothing: Weight of the uniform distribution in the target distribution.

        Returns:
            The loss and the log-probability of each target, and the final state.
        """
        memory = self._no_memory(tokens.shape[:-1])
        with checked_tokens("LanguageModel", self.num_tokens, mask, tokens=tokens, targets=targets):
            return self.decoder.score(
                tokens, targets, memory, mask, state, label_smoothing=label_smoothing
            )

    @torch.no_grad()
    def self_attentions(
        self, tokens: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Attended, ...]:
        """Return the attention of each token to the tokens before it, for every layer, lowest layer first.

        Args:
            tokens: Token ids to read, the begin symbol first.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            One result for each different attention of a layer, with weights `(B, h, T, T)` of its h heads; an empty tuple
            for a recurrent network.
        """
        with checked_tokens("LanguageModel", self.num_tokens, mask, tokens=tokens):
            return self.decoder.self_attentions(tokens, mask)

    def stepper(self) -> DecoderStepper:
        """Prepare a stepper for search from the current weights; the model must be in `eval()` mode.

        Returns:
            The stepper that `beam_search` and the other searches take.
        """
        return DecoderStepper(self.decoder)

    @torch.no_grad()
    def start(self, batch_size: int) -> SteppingState:
        """Return the initial state of a search, with one hypothesis for each item.

        Args:
            batch_size: Number of items.

        Returns:
            The state that a search starts from.
        """
        return self.stepper().start(self._no_memory([batch_size]))

    @property
    def num_tokens(self) -> int:
        """Return the size of the vocabulary."""
        return self.decoder.embedding.num_embeddings

    def _no_memory(self, batch: Sequence[int]) -> Memory:
        like = self.decoder.embedding.weight
        return Memory(like.new_zeros(*batch, 0, 0), summary=like.new_zeros(*batch, 0))


def detached(state: DecoderState) -> DecoderState:
    """Detach the state from the autograd graph: no gradient flows back beyond it.

    Args:
        state: State after a chunk of text.

    Returns:
        A state with the same values, from which the next chunk can start.
    """
    return state.map(Tensor.detach)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageModelSpec(AbstractRecurrentSpec):
    """A model that predicts the next token of a text."""

    kind: Literal["language_model"] = "language_model"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    tie_embeddings: bool = setting(False, "the output layer shares the table of the embeddings")
    learned_state: bool = setting(False, "learn the initial state; false: it is 0")

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        """The names of the results of `LanguageModel.self_attentions`: none."""
        return ()

    def build(self, *, vocabulary: int) -> LanguageModel:
        """Build the model with new weights.

        Args:
            vocabulary: Number of tokens.

        Returns:
            The model, in training mode.

        Raises:
            ValueRangeError: If `tie_embeddings` is set and `embedding_size` is not `hidden_size`.
        """
        check(self)
        check_sizes("LanguageModel", vocabulary=vocabulary)
        if self.tie_embeddings and self.embedding_size != self.hidden_size:
            raise ValueRangeError(
                f"LanguageModelSpec: tie_embeddings needs embedding_size and hidden_size to be equal, got "
                f"{self.embedding_size} and {self.hidden_size}. Set embedding_size to "
                f"{self.hidden_size}, or tie_embeddings to false."
            )
        stack = self.stack(self.embedding_size)
        decoder = PlainDecoder(
            embedding=nn.Embedding(vocabulary, self.embedding_size),
            stack=stack,
            bridge=LearnedStateBridge(stack) if self.learned_state else NoBridge(),
            tie_embeddings=self.tie_embeddings,
            dropout=self.dropout,
        )
        return LanguageModel(decoder)
