"""Scores that depend on the attention of earlier steps.

    history_0 = first(memory)
    potentials_t = combine( inner scores_t, query_t, history_{t-1} )
    history_t = after( history_{t-1}, weights_t )

A decoder keeps the history in its state and attends with one step at a time.

Axes: *batch any leading shape, Q queries, S positions, D width of a query, V width of a value.
"""

from abc import abstractmethod
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from .._memory import Memory
from .._scorers import AbstractScorer, scores_of


class HistoryKeys(NamedTuple):
    """The keys of the inner scorer, and the history of each query; None if there are no earlier steps."""

    inner: Any
    history: Float[Tensor, "*batch Q S"] | None = None


class AbstractHistoryScorer(AbstractScorer):
    """Combines the scores of another scorer with one number for each position, which earlier steps have left.

    Before each step, a decoder replaces the history in the keys of the memory: `keys._replace(history=...)`.

    Args:
        inner: Scorer whose potentials are one tensor of scores.
    """

    def __init__(self, inner: AbstractScorer) -> None:
        super().__init__()
        self.inner = inner

    @abstractmethod
    def first(self, memory: Memory) -> Float[Tensor, "*batch S"]:
        """Return the history before the first step.

        Args:
            memory: Memory that the steps read.

        Returns:
            One number for each position.
        """

    @abstractmethod
    def after(
        self, history: Float[Tensor, "*batch S"], weights: Float[Tensor, "*batch S"]
    ) -> Float[Tensor, "*batch S"]:
        """Return the history after a step.

        Args:
            history: History before the step.
            weights: Attention weights of the step.

        Returns:
            One number for each position.
        """

    @abstractmethod
    def combine(
        self,
        scores: Float[Tensor, "*batch Q S"],
        query: Float[Tensor, "*batch Q D"],
        history: Float[Tensor, "*batch Q S"] | None,
    ) -> tuple[Tensor, ...]:
        """Compute the potentials of a step from the inner scores and the history.

        Args:
            scores: Scores of the inner scorer.
            query: The queries that were scored.
            history: History before each query; None if there are no earlier steps.

        Returns:
            Potentials for the distribution of the attention.
        """

    @override
    def remember(self, values: Float[Tensor, "*batch S V"]) -> HistoryKeys:
        return HistoryKeys(self.inner.remember(values))

    @override
    def forward(self, query: Float[Tensor, "*batch Q D"], keys: HistoryKeys) -> tuple[Tensor, ...]:
        """Compute the potentials, given the history.

        Args:
            query: Queries, usually one.
            keys: Keys, as `remember` returns them, with the history of each query.

        Returns:
            Potentials for the distribution of the attention.

        Raises:
            ShapeError: The inner scorer returns several tensors.
        """
        return self.combine(scores_of(self.inner, query, keys.inner), query, keys.history)


def with_history(memory: Memory, history: Float[Tensor, "*batch Q S"] | None) -> Memory:
    """Return a memory for the next step of an attention with history; the same memory if there is none."""
    if history is None:
        return memory
    return memory._replace(keys=memory.keys._replace(history=history))
