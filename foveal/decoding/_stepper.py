"""What a search needs of a model.

    state, log_probs, weights = stepper.step( state, tokens )

A search holds K hypotheses for each of B items. The state holds everything, the memory too: tensors
of the memory begin with (B,), those of the hypotheses with (B, K), so that the hypotheses of an item
are K queries of one memory and nothing is repeated. A fresh state has K = 1.

Axes: B items, K hypotheses of each, k as many after a choice, b items that stay, W tokens of the
vocabulary.
"""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from ..networks import SearchStep


@runtime_checkable
class Stepper(Protocol):
    """A model that can be searched; `foveal.networks.DecoderStepper` makes one of a decoder.

    Nothing is kept on it between calls, and no state that it was given is changed.
    """

    @property
    def num_tokens(self) -> int:
        """W, the size of the vocabulary."""
        ...

    def batch_size(self, state: Any) -> int:
        """B, the number of items in the state."""
        ...

    def step(self, state: Any, tokens: Int[Tensor, "B K"]) -> SearchStep:
        """Every hypothesis reads one token; what may come next, as normalized log-probabilities."""
        ...

    def reorder(self, state: Any, parents: Int[Tensor, "B k"]) -> Any:
        """Hypothesis k of item b continues `parents[b, k]`; there may be more or fewer than before."""
        ...

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """Only these items, in this order, the memory too."""
        ...
