"""Steppers that never produce a reserved token: padding, begin, unknown."""

from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...attention import Memory
from ...data import BEGIN
from ...data.vocabularies._vocabulary import PADDING, UNKNOWN
from ...decoding import Ensemble
from ...networks import DecoderStepper, SearchStep
from ...networks.search._latent_stepping import LatentStepper
from ...networks.search._stepping_state import SteppingState

_UNSPEAKABLE = [PADDING, UNKNOWN, BEGIN]


@final
class Speaking:
    """The steps of a decoder with three tokens forbidden. An automaton would also work, but would process all
    log-probabilities at every step, where three columns are enough.
    """

    def __init__(self, stepper: DecoderStepper | LatentStepper) -> None:
        self._stepper = stepper
        self.num_tokens = stepper.num_tokens

    def start(self, memory: Memory) -> SteppingState:
        """Return the state before the first token."""
        return self._stepper.start(memory)

    def batch_size(self, state: Any) -> int:
        """Return the number of items in the state."""
        return self._stepper.batch_size(state)

    def step(
        self,
        state: Any,
        tokens: Int[Tensor, "B K"],
        forced: Float[Tensor, "B K S"] | None = None,
    ) -> SearchStep:
        """Advance every hypothesis by one token."""
        stepped = self._stepper.step(state, tokens, forced)
        stepped.log_probs[..., _UNSPEAKABLE] = -torch.inf
        return stepped

    def selection(self, state: Any, tokens: Int[Tensor, "B K"]) -> Bool[Tensor, "B K S"] | None:
        """Return the most probable segments that the next step reads."""
        return self._stepper.selection(state, tokens)

    def copy_probability(
        self, state: Any, tokens: Int[Tensor, "B K"]
    ) -> Float[Tensor, "B K"] | None:
        """Return the probability that the next step copies a token of the source."""
        return self._stepper.copy_probability(state, tokens)

    def reorder(self, state: Any, parents: Int[Tensor, "B k"]) -> Any:
        """Reorder the hypotheses: hypothesis k of item b continues `parents[b, k]`."""
        return self._stepper.reorder(state, parents)

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """Keep only these items."""
        return self._stepper.keep(state, items)


@final
class SpeakingTogether:
    """The steps of an ensemble with the same tokens forbidden. They are forbidden after the members are combined,
    because a product would otherwise be normalized over fewer tokens.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self.num_tokens = ensemble.num_tokens

    def batch_size(self, state: Any) -> int:
        """Return the number of items in the state."""
        return self._ensemble.batch_size(state)

    def step(self, state: Any, tokens: Int[Tensor, "B K"]) -> SearchStep:
        """Advance every hypothesis by one token in every model."""
        stepped = self._ensemble.step(state, tokens)
        stepped.log_probs[..., _UNSPEAKABLE] = -torch.inf
        return stepped

    def reorder(self, state: Any, parents: Int[Tensor, "B k"]) -> Any:
        """Reorder the hypotheses: hypothesis k of item b continues `parents[b, k]`."""
        return self._ensemble.reorder(state, parents)

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """Keep only these items."""
        return self._ensemble.keep(state, items)
