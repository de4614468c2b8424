"""Score functions of attention as graphs; the equations are in `foveal.attention`.

Axes: N items, Q queries, S positions, D width of a query, V width of a value.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from typing import final

from typing_extensions import override

from ...models import AdditiveSpec, BilinearSpec, DotSpec, LinearSpec
from ...models.parts._scorer_specs import AbstractScorerSpec
from ._graph import Value, linear, op, squeeze, unsqueeze
from ._refusal import refusal
from ._weights import Weights


class ScorerGraph(ABC):
    """A score function: the keys are computed once for each memory, the scores at every step."""

    @abstractmethod
    def keys(self, values: Value) -> Value:
        """Compute the keys.

        Args:
            values: Values `(N, S, V)`.

        Returns:
            Keys, for `scores`.
        """

    @abstractmethod
    def scores(self, query: Value, keys: Value) -> Value:
        """Compute the scores.

        Args:
            query: Queries `(N, Q, D)`.
            keys: Result of `keys`.

        Returns:
            Scores `(N, Q, S)`.
        """


@singledispatch
def scorer_graph(spec: AbstractScorerSpec, weights: Weights, query_size: int) -> ScorerGraph:
    """Return the graph of a score function; register a function for a scorer of your own.

    Args:
        spec: Spec of the scorer.
        weights: Weights of the scorer.
        query_size: Width of a query.

    Returns:
        The graph.

    Raises:
        ExportError: There is no graph for this kind of scorer.
    """
    del weights, query_size
    raise refusal("scorer", spec)


@scorer_graph.register
def _(spec: DotSpec, weights: Weights, query_size: int) -> ScorerGraph:
    del weights
    return _Dot(1 / math.sqrt(query_size) if spec.scaled else 1.0)


@scorer_graph.register
def _(spec: BilinearSpec, weights: Weights, query_size: int) -> ScorerGraph:
    return _Bilinear(weights, 1 / math.sqrt(query_size) if spec.scaled else 1.0)


@scorer_graph.register
def _(spec: AdditiveSpec, weights: Weights, query_size: int) -> ScorerGraph:
    del spec, query_size
    return _Additive(weights)


@scorer_graph.register
def _(spec: LinearSpec, weights: Weights, query_size: int) -> ScorerGraph:
    del spec, query_size
    return _Linear(weights)


@final
@dataclass(frozen=True)
class _Dot(ScorerGraph):
    """score = scale * q . k."""

    scale: float

    @override
    def keys(self, values: Value) -> Value:
        return op("Transpose", values * self.scale, perm=[0, 2, 1])

    @override
    def scores(self, query: Value, keys: Value) -> Value:
        return query @ keys


@final
@dataclass(frozen=True)
class _Bilinear(ScorerGraph):
    """score = scale * q W k."""

    weights: Weights
    scale: float

    @override
    def keys(self, values: Value) -> Value:
        projected = linear(values, self.weights["project.weight"] * self.scale)
        return op("Transpose", projected, perm=[0, 2, 1])

    @override
    def scores(self, query: Value, keys: Value) -> Value:
        return query @ keys


@final
@dataclass(frozen=True)
class _Additive(ScorerGraph):
    """score = v . tanh(W q + U k + b)."""

    weights: Weights

    @override
    def keys(self, values: Value) -> Value:
        projected = linear(values, self.weights["key.weight"], self.weights["key.bias"])
        return unsqueeze(projected, 1)  # (N, 1, S, hidden)

    @override
    def scores(self, query: Value, keys: Value) -> Value:
        projected = unsqueeze(linear(query, self.weights["query.weight"]), 2)
        hidden = op("Tanh", projected + keys)  # (N, Q, S, hidden)
        return squeeze(hidden @ self.weights["combine.weight"].T, 3)


@final
@dataclass(frozen=True)
class _Linear(ScorerGraph):
    """score = w . [q; k]."""

    weights: Weights

    @override
    def keys(self, values: Value) -> Value:
        return op("Transpose", linear(values, self.weights["key.weight"]), perm=[0, 2, 1])

    @override
    def scores(self, query: Value, keys: Value) -> Value:
        return linear(query, self.weights["query.weight"]) + keys
