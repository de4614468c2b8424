"""An encoder and a decoder: what every model that reads one thing and writes another has.

    memory = encoder(inputs),   p(y | inputs) = prod over t of p(y_t | y_<t, memory)

Axes: B items of a batch, T tokens written, S places of the memory.
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
from ..networks.decoders._decoder import AbstractRecurrentDecoder, TokenLosses, Unrolled
from ..networks.search._latent_stepping import LatentStepper
from ..networks.search._prepared_encoder import PreparedEncoder
from ..networks.search._stepping_state import SteppingState
from ._checks import check_batch, checked_tokens

# Inputs and their mask -> the memory.
Encode = Callable[[Tensor, Tensor | None], Memory]


class AbstractEncoderDecoder(nn.Module, ABC):
    """Encode once, then score what should have been written, or search for what to write."""

    def __init__(self, encoder: AbstractEncoder, decoder: AbstractRecurrentDecoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @abstractmethod
    def encode_by(self, encoder: Encode, source: Tensor, source_mask: Tensor | None) -> Memory:
        """What the decoder reads, made by this encoder: the model's own, or one prepared from it."""

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Memory:
        """What the decoder reads."""
        return self.encode_by(self.encoder, source, source_mask)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor | None,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> Unrolled:
        """Log-probabilities of every token after each of `tokens`, the begin symbol first."""
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
        """Teacher forcing with its loss: `targets[t]` should come after `tokens[t]`. The table of
        log-probabilities that `forward` gives is never made.
        """
        memory = self.encode(source, source_mask)
        self._check(memory, tokens)
        with checked_tokens(self._name, self.num_tokens, mask, tokens=tokens, targets=targets):
            return self.decoder.score(
                tokens, targets, memory, mask, label_smoothing=label_smoothing
            )

    def stepper(self) -> DecoderStepper | LatentStepper:
        """Steps for search, prepared from the weights as they are now; the model is in `eval()`."""
        return _stepper(self.decoder, half=False)

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None) -> SteppingState:
        """The state of a search before its first token, one hypothesis for each item."""
        return self.stepper().start(self.encode(source, source_mask))

    def prepare(self, *, half: bool = False) -> "Prepared":
        """The model made ready for many searches; it is in `eval()`. With `half`, matrix products
        are in bfloat16: faster for batches of some tens and more, and good to two or three digits.
        """
        return Prepared(self, half=half)

    @property
    def num_tokens(self) -> int:
        """How many tokens there are to write."""
        return self.decoder.embedding.num_embeddings

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _check(self, memory: Memory, tokens: Tensor) -> None:
        check_batch(self._name, source=memory.values.shape[:-2], tokens=tokens.shape[:-1])


@final
class Prepared:
    """A model made ready for search, once from its weights; make another when they have changed.

    `stepper` is what a search asks for; `start` encodes faster than the model's own does.
    """

    def __init__(self, model: AbstractEncoderDecoder, *, half: bool = False) -> None:
        self._model, self._encoder = model, PreparedEncoder(model.encoder, half=half)
        self.stepper = _stepper(model.decoder, half=half)

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None) -> SteppingState:
        """The state of a search before its first token, one hypothesis for each item."""
        return self.stepper.start(self._model.encode_by(self._encoder, source, source_mask))


def _stepper(decoder: AbstractRecurrentDecoder, *, half: bool) -> DecoderStepper | LatentStepper:
    """The steps that this decoder takes."""
    if isinstance(decoder, LatentDecoder):
        return LatentStepper(decoder, half=half)
    if not isinstance(decoder, AbstractDecoder):
        raise ValueRangeError(
            f"{type(decoder).__name__}: a search needs a decoder that derives from AbstractDecoder, got one that does "
            f"not. Derive it from foveal.networks.AbstractDecoder."
        )
    return DecoderStepper(decoder, half=half)
