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
from ..networks import (
    AbstractDecoder,
    AbstractEncoder,
    BahdanauDecoder,
    DecoderStepper,
    LatentDecoder,
    TransformerDecoder,
)
from ..networks.decoders._steps import TokenLosses, Unrolled
from ..networks.decoders._token_decoder import AbstractTokenDecoder
from ..networks.search._latent_stepping import LatentStepper
from ..networks.search._prepared_encoder import PreparedEncoder
from ..networks.search._stepping_state import SteppingState
from ._checks import check_batch, checked_tokens

# Maps inputs and their mask to the memory.
Encode = Callable[[Tensor, Tensor | None], Memory]


class AbstractEncoderDecoder(nn.Module, ABC):
    """Encodes an input once, then scores given outputs or starts a search.

    Args:
        encoder: Maps the input to a memory.
        decoder: Generates the output from the memory.
    """

    def __init__(self, encoder: AbstractEncoder, decoder: AbstractTokenDecoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @abstractmethod
    def encode_by(self, encoder: Encode, source: Tensor, source_mask: Tensor | None) -> Memory:
        """Compute the decoder's memory with a given encoder.

        Args:
            encoder: The encoder of the model, or its prepared form.
            source: Inputs of a batch.
            source_mask: True on real inputs; None if all inputs are real.

        Returns:
            The memory that the decoder reads.
        """

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Memory:
        """Compute the decoder's memory.

        Args:
            source: Inputs of a batch.
            source_mask: True on real inputs; None if all inputs are real.

        Returns:
            The memory that the decoder reads.
        """
        return self.encode_by(self.encoder, source, source_mask)

    def forward(
        self,
        source: Tensor,
        source_mask: Tensor | None,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
    ) -> Unrolled:
        """Compute log-probabilities of the next token after each of `tokens`.

        Args:
            source: Inputs of a batch.
            source_mask: True on real inputs; None if all inputs are real.
            tokens: Output token ids to read, the begin symbol first.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            The log-probabilities of the token after each token, the attention, and the final state.
        """
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

        Args:
            source: Inputs of a batch.
            source_mask: True on real inputs; None if all inputs are real.
            tokens: Output token ids to read, the begin symbol first.
            targets: Output token ids to predict, the end symbol last.
            mask: True on real tokens; None if all tokens are real.
            label_smoothing: Weight of the uniform distribution in the target distribution.

        Returns:
            The loss and the log-probability of each target, the attention, and the final state.
        """
        memory = self.encode(source, source_mask)
        self._check(memory, tokens)
        with checked_tokens(self._name, self.num_tokens, mask, tokens=tokens, targets=targets):
            return self.decoder.score(
                tokens, targets, memory, mask, label_smoothing=label_smoothing
            )

    def stepper(self) -> DecoderStepper | LatentStepper:
        """Prepare a stepper for search from the current weights; the model must be in `eval()` mode.

        Returns:
            The stepper that `beam_search` and the other searches take.
        """
        return _stepper(self.decoder, half=False)

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None) -> SteppingState:
        """Return the initial state of a search, with one hypothesis for each item.

        Args:
            source: Inputs of a batch.
            source_mask: True on real inputs; None if all inputs are real.

        Returns:
            The state that a search starts from, which includes the memory.
        """
        return self.stepper().start(self.encode(source, source_mask))

    def prepare(self, *, half: bool = False) -> "Prepared":
        """Prepare the model, which must be in `eval()` mode, for many searches.

        Args:
            half: Use bfloat16 in matrix products: faster for batches of more than a few dozen items, with two or
                three digits of precision.

        Returns:
            A stepper and a faster encoder, prepared from the current weights.
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

    Args:
        model: Model in evaluation mode.
        half: Use bfloat16 in matrix products.
    """

    def __init__(self, model: AbstractEncoderDecoder, *, half: bool = False) -> None:
        self._model, self._encoder = model, PreparedEncoder(model.encoder, half=half)
        self.stepper = _stepper(model.decoder, half=half)

    @torch.no_grad()
    def start(self, source: Tensor, source_mask: Tensor | None = None) -> SteppingState:
        """Return the initial state of a search, with one hypothesis for each item.

        Args:
            source: Inputs of a batch.
            source_mask: True on real inputs; None if all inputs are real.

        Returns:
            The state that a search starts from, which includes the memory.
        """
        return self.stepper.start(self._model.encode_by(self._encoder, source, source_mask))


def _stepper(decoder: AbstractTokenDecoder, *, half: bool) -> DecoderStepper | LatentStepper:
    """Build the stepper for this decoder."""
    if isinstance(decoder, LatentDecoder):
        return LatentStepper(decoder, half=half)
    if not isinstance(decoder, AbstractDecoder | BahdanauDecoder | TransformerDecoder):
        raise ValueRangeError(
            f"{type(decoder).__name__}: a search needs a decoder that derives from AbstractDecoder, got one that does "
            f"not. Derive it from foveal.networks.AbstractDecoder."
        )
    return DecoderStepper(decoder, half=half)
