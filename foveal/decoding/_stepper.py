"""The interface between a search and a model.

    state, log_probs, weights = stepper.step( state, tokens )

A search holds K hypotheses for each of B items. The state includes the memory: tensors of the memory have
a first axis B, tensors of the hypotheses start with the axes (B, K). The hypotheses of an item are
K queries of one memory, so the memory is not repeated. An initial state has K = 1.

Axes: B items, K hypotheses of each, k hypotheses after a selection, b remaining items, W tokens of the
vocabulary.
"""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from ..networks import SearchStep


@runtime_checkable
class Stepper(Protocol):
    """A model that a search can run; `foveal.networks.DecoderStepper` builds one from a decoder.

    A stepper keeps no state between calls and does not modify the states that it receives.
    """

    @property
    def num_tokens(self) -> int:
        """Return W, the size of the vocabulary."""
        ...

    def batch_size(self, state: Any) -> int:
        """Return B, the number of items in the state."""
        ...

    def step(self, state: Any, tokens: Int[Tensor, "B K"]) -> SearchStep:
        """Feed one token to every hypothesis and return normalized log-probabilities of the next token."""
        ...

    def reorder(self, state: Any, parents: Int[Tensor, "B k"]) -> Any:
        """Select hypotheses: hypothesis k of item b continues `parents[b, k]`; their number may change."""
        ...

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """Select these items, in this order, including their memory."""
        ...
