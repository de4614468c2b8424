"""Specs of the score functions of attention.

Each spec builds a scorer for queries and values of given widths; the equations are in
`foveal.attention`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, final

from typing_extensions import override

from ...attention import (
    AbstractScorer,
    AdditiveScorer,
    BilinearScorer,
    DotScorer,
    LinearScorer,
    scaled_dot_scorer,
)
from ...errors import ShapeError
from ...specs import AbstractSpec, setting


class AbstractScorerSpec(AbstractSpec):
    """A score function. Derive from it to use a custom scorer in any attention."""

    __slots__ = ()

    @abstractmethod
    def build(self, query_size: int, value_size: int) -> AbstractScorer:
        """Build the scorer.

        Args:
            query_size: Width of a query.
            value_size: Width of the values of the memory.

        Returns:
            A scorer with new weights.
        """


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class AdditiveSpec(AbstractScorerSpec):
    """score = v . tanh(W q + U k + b) (Bahdanau et al. 2015)."""

    kind: Literal["additive"] = "additive"
    hidden_size: int | None = setting(
        None, "width of the hidden layer of the score; none: the width of the query", at_least=1
    )

    @override
    def build(self, query_size: int, value_size: int) -> AbstractScorer:
        """Build the scorer."""
        hidden_size = query_size if self.hidden_size is None else self.hidden_size
        return AdditiveScorer(query_size, value_size, hidden_size)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class DotSpec(AbstractScorerSpec):
    """score = q . k, divided by the square root of their width if scaled."""

    kind: Literal["dot"] = "dot"
    scaled: bool = setting(True, "divide by the square root of the width (Vaswani et al. 2017)")

    @override
    def build(self, query_size: int, value_size: int) -> AbstractScorer:
        """Build the scorer."""
        if query_size != value_size:
            raise ShapeError(
                f"DotSpec: a dot product needs queries and values of one width, got {query_size} "
                f"and {value_size}. Choose the bilinear score, which has no such need, or make the "
                f"decoder's hidden_size {value_size}."
            )
        return scaled_dot_scorer(query_size) if self.scaled else DotScorer()


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BilinearSpec(AbstractScorerSpec):
    """score = q W k (Luong et al. 2015, "general"), divided by the square root of the query's width if scaled."""

    kind: Literal["bilinear"] = "bilinear"
    scaled: bool = setting(
        False, "divide by the square root of the width, which is more stable over many positions"
    )

    @override
    def build(self, query_size: int, value_size: int) -> AbstractScorer:
        """Build the scorer."""
        return BilinearScorer(query_size, value_size, scaled=self.scaled)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LinearSpec(AbstractScorerSpec):
    """score = w . [q; k], the simplest score of the lectures.

    Under a softmax, the part of the query cancels, because it is equal for every position; under a sigmoid
    or a chain it does not.
    """

    kind: Literal["linear"] = "linear"

    @override
    def build(self, query_size: int, value_size: int) -> AbstractScorer:
        """Build the scorer."""
        return LinearScorer(query_size, value_size)


ScorerSpec = AdditiveSpec | DotSpec | BilinearSpec | LinearSpec | AbstractScorerSpec
