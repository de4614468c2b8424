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
        """Return B, the number of items in the state.

        Args:
            state: State of the search.

        Returns:
            The number of items.
        """
        ...

    def step(self, state: Any, tokens: Int[Tensor, "B K"]) -> SearchStep:
        """Feed one token to every hypothesis.

        Args:
            state: State before the tokens.
            tokens: One token id for each hypothesis.

        Returns:
            The new state, normalized log-probabilities of the next token, and the attention weights.
        """
        ...

    def reorder(self, state: Any, parents: Int[Tensor, "B k"]) -> Any:
        """Select hypotheses; their number may change.

        Args:
            state: State of the search.
            parents: Index of the hypothesis of item b that hypothesis k continues, as `[b, k]`.

        Returns:
            The state of the selected hypotheses.
        """
        ...

    def keep(self, state: Any, items: Int[Tensor, " b"]) -> Any:
        """Select these items, in this order, including their memory.

        Args:
            state: State of the search.
            items: Indices of the items to keep.

        Returns:
            The state of these items.
        """
        ...
