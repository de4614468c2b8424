"""The values that decoders pass and return: their state, one step, all steps.

Axes: *batch any leading shape, T tokens, Q queries, S positions, W tokens of the vocabulary, A width of the
vector v before the output layer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ..recurrent._layers import map_state
from ..recurrent._stacks import StackState


@runtime_checkable
class Reading(Protocol):
    """The attention of a decoder: `Attended`, or any object with weights over the positions of the memory."""

    @property
    def weights(self) -> Tensor:
        """Return the weights: `(*batch, Q, S)`, or `(*batch, H, Q, S)` of H heads."""
        ...


class DecoderState(NamedTuple):
    """The state of a decoder between two tokens; the first axes of every tensor are the batch axes.

    The type of `own` depends on the decoder: None, a tensor, or a NamedTuple of tensors, some of which may
    be None.
    """

    layers: StackState
    # Not a type parameter: beartype 0.23, which checks shapes in the tests, rejects a generic NamedTuple, and
    # pytree, which checkpoints use to save the state, does not support dataclasses.
    own: Any = None
    # What the attention keeps of the weights of earlier steps, if its scores read it: their sum, or the last weights.
    history: Float[Tensor, "*batch S"] | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "DecoderState":
        """Apply a function to every tensor, without a generic tree map: every step of beam search calls it.

        Args:
            function: Maps a tensor to the tensor that takes its place.

        Returns:
            A state of the same structure with the new tensors.
        """
        own = self.own
        if isinstance(own, Tensor):
            own = function(own)
        elif own is not None:
            own = type(own)(*(None if part is None else function(part) for part in own))
        layers = tuple(map_state(function, layer) for layer in self.layers)
        return DecoderState(layers, own, None if self.history is None else function(self.history))


class Step(NamedTuple):
    """One step: the new state, the log-probabilities of the next token, and the attention (one query)."""

    state: DecoderState
    log_probs: Float[Tensor, "*batch W"]
    attended: Reading | None


class Unrolled(NamedTuple):
    """All steps: `log_probs[t]` is for the token after `tokens[t]`, and 0 on padding.

    `attended` holds the attention: one result with T queries, T results with one query each (input
    feeding), or none. The attention of padded tokens is included but meaningless.
    """

    log_probs: Float[Tensor, "*batch T W"]
    attended: tuple[Reading, ...]
    state: DecoderState
    copied: Float[Tensor, "*batch T"] | None = (
        None  # probability of copying, for decoders that copy
    )

    @property
    def weights(self) -> Tensor | None:
        """Return the weights of all steps; None without attention.

        The shape is `(*batch, T, S)`, or `(*batch, H, T, S)` of H heads.
        """
        return joined_weights(self.attended)


class TokenLosses(NamedTuple):
    """The losses of all steps, given the target tokens; both values are 0 on padding.

    `loss` is -log p of the target, with label smoothing if set, and has the gradient; `log_prob` is the
    log-probability of the target, without a gradient.
    """

    loss: Float[Tensor, "*batch T"]
    log_prob: Float[Tensor, "*batch T"]
    attended: tuple[Reading, ...]
    state: DecoderState

    @property
    def weights(self) -> Tensor | None:
        """Return the weights of all steps, as in `Unrolled`."""
        return joined_weights(self.attended)


class TeacherForced(NamedTuple):
    """Teacher forcing before the output layer: the vector v of every step."""

    vectors: Float[Tensor, "*batch T A"]
    attended: tuple[Reading, ...]
    state: DecoderState


def joined_weights(attended: tuple[Reading, ...]) -> Tensor | None:
    """Concatenate the weights along the axis of the queries."""
    if not attended:
        return None
    return torch.cat([reading.weights for reading in attended], -2)
