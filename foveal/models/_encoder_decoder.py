"""Encoder-decoder: the base of all models that generate an output from an input.

    memory = encoder(inputs),   p(y | inputs) = prod over t of p(y_t | y_<t, memory)

Axes: B items of a batch, T output tokens, S positions of the memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from ..attention import Memory
from ..errors import ValueRangeError
from ..networks import AbstractDecoder, AbstractEncoder, DecoderStepper, LatentDecoder
from ..networks.decoders._decoder import AbstractRecurrentDecoder
from ..networks.decoders._steps import TokenLosses, Unrolled
from ..networks.search._latent_stepping import LatentStepper
from ..networks.search._prepared_encoder import PreparedEncoder
from ..networks.search._stepping_state import SteppingState
from ._checks import check_batch, checked_tokens

# Maps inputs and their mask to the memory.
Encode = Callable[[Tensor, Tensor | None], Memory]


class AbstractEncoderDecoder(nn.Module, ABC):
    """Encodes an input once, then scores given outputs or starts a search."""

    def __init__(self, encoder: AbstractEncoder, decoder: AbstractRecurrentDecoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @abstractmethod
    def encode_by(self, encoder: Encode, source: Tensor, source_mask: Tensor | None) -> Memory:
        """Compute the decoder's memory with this encoder: the model's encoder, or a prepared one."""

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Memory:
        """Compute the decoder's memory."""
        return self.encode_by(self.encoder, source, source_mask)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor | None,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> Unrolled:
        """Compute log-probabilities of the next token after each of `tokens`; the first is the begin symbol."""
        memory = self.encode(source, source_mask)
        self._check(memory, tokens)
        with checked_tokens(self._name, self.num_tokens, mask, tokens=tokens):
            return self.decoder.unroll(tokens, memory, mask)

    def score(
        self,
        source: Tensor,
        source_mask: Tensor | None,
        tokens: Int[Tensor, "B T"],
        targets: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> TokenLosses:
        """Compute the loss with teacher forcing: `targets[t]` is the target after `tokens[t]`.

        It never creates the table of log-probabilities that `forward` returns.
        """
        memory = self.encode(source, source_mask)
        self._check(memory, tokens)
        with checked_tokens(self._name, self.num_tokens, mask, tokens=tokens, targets=targets):
            return self.decoder.score(
                tokens, targets, memory, mask, label_smoothing=label_smoothing
            )

    def stepper(self) -> DecoderStepper | LatentStepper:
        """Prepare a stepper for search from the current weights; the model must be in `eval()` mode."""
        return _stepper(self.decoder, half=False)

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None) -> SteppingState:
        """Return the initial state of a search, with one hypothesis for each item."""
        return self.stepper().start(self.encode(source, source_mask))

    def prepare(self, *, half: bool = False) -> "Prepared":
        """Prepare the model, which must be in `eval()` mode, for many searches.

        With `half`, matrix products use bfloat16: faster for batches of more than a few dozen items, with
        two or three digits of precision.
        """
        return Prepared(self, half=half)

    @property
    def num_tokens(self) -> int:
        """Return the size of the output vocabulary."""
        return self.decoder.embedding.num_embeddings

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _check(self, memory: Memory, tokens: Tensor) -> None:
        check_batch(self._name, source=memory.values.shape[:-2], tokens=tokens.shape[:-1])


@final
class Prepared:
    """A model prepared for search from its current weights; prepare it again when they change.

    Pass `stepper` to a search; `start` encodes faster than the model.
    """

    def __init__(self, model: AbstractEncoderDecoder, *, half: bool = False) -> None:
        self._model, self._encoder = model, PreparedEncoder(model.encoder, half=half)
        self.stepper = _stepper(model.decoder, half=half)

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None) -> SteppingState:
        """Return the initial state of a search, with one hypothesis for each item."""
        return self.stepper.start(self._model.encode_by(self._encoder, source, source_mask))


def _stepper(decoder: AbstractRecurrentDecoder, *, half: bool) -> DecoderStepper | LatentStepper:
    """Build the stepper for this decoder."""
    if isinstance(decoder, LatentDecoder):
        return LatentStepper(decoder, half=half)
    if not isinstance(decoder, AbstractDecoder):
        raise ValueRangeError(
            f"{type(decoder).__name__}: a search needs a decoder that derives from AbstractDecoder, got one that does "
            f"not. Derive it from foveal.networks.AbstractDecoder."
        )
    return DecoderStepper(decoder, half=half)
