"""Attentions as graphs: scores become the weights of the positions, and the context is their weighted sum of values.

Segment attention is a chain of two states, "skip" and "read". Of two states only the odds matter, so each position
hears one number from its left and one from its right:

    odds[s] = score[s] + left[s] + right[s],    left[s + 1] = follow( left[s] + score[s] )

Axes: N items, Q queries, S positions, D width of a query.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import TypeAlias, final

import numpy as np

from ...models import (
    HardSpec,
    LocalSpec,
    SegmentSpec,
    SigmoidSpec,
    SoftmaxSpec,
    SparsemaxSpec,
)
from ...models.parts._attention_specs import AbstractSelfAttentionSpec, BaseAttentionSpec
from ._graph import (
    FLOAT,
    Graph,
    Value,
    axes,
    linear,
    log,
    op,
    ops,
    places,
    size,
    softplus,
    squeeze,
    unsqueeze,
)
from ._memory import closed
from ._refusal import refusal
from ._scorers import ScorerGraph, scorer_graph
from ._weights import Weights

AnyAttentionSpec: TypeAlias = BaseAttentionSpec | AbstractSelfAttentionSpec
# Maps scores (N, Q, S), queries (N, Q, D) and the mask of real positions (N, S) to weights (N, Q, S).
Distribute = Callable[[Value, Value, Value], Value]


@final
@dataclass(frozen=True)
class AttentionGraph:
    """score -> distribute; the context is `weights @ values` for every attention of this package."""

    scorer: ScorerGraph
    distribute: Distribute


@singledispatch
def attention_graph(spec: AnyAttentionSpec, weights: Weights, query_size: int) -> AttentionGraph:
    """Return the graph of an attention; register a function for an attention of your own.

    Args:
        spec: Spec of the attention.
        weights: Weights of its scorer.
        query_size: Width of a query.

    Returns:
        The graph.

    Raises:
        ExportError: There is no graph for this kind of attention.
    """
    del weights, query_size
    raise refusal("attention", spec)


@attention_graph.register
def _(spec: SoftmaxSpec, weights: Weights, query_size: int) -> AttentionGraph:
    return AttentionGraph(scorer_graph(spec.scorer, weights, query_size), softmax)


@attention_graph.register
def _(spec: SigmoidSpec, weights: Weights, query_size: int) -> AttentionGraph:
    return AttentionGraph(scorer_graph(spec.scorer, weights, query_size), _sigmoid)


@attention_graph.register
def _(spec: HardSpec, weights: Weights, query_size: int) -> AttentionGraph:
    return AttentionGraph(scorer_graph(spec.scorer, weights, query_size), _most_probable)


@attention_graph.register
def _(spec: SparsemaxSpec, weights: Weights, query_size: int) -> AttentionGraph:
    return AttentionGraph(scorer_graph(spec.scorer, weights, query_size), _sparsemax)


@attention_graph.register
def _(spec: LocalSpec, weights: Weights, query_size: int) -> AttentionGraph:
    near = partial(_near_place, weights.at("place"), spec.window)
    return AttentionGraph(scorer_graph(spec.scorer, weights.at("inner"), query_size), near)


@attention_graph.register
def _(spec: SegmentSpec, weights: Weights, query_size: int) -> AttentionGraph:
    chain = partial(_segments, weights["transitions"], spec.total)
    return AttentionGraph(scorer_graph(spec.scorer, weights.at("inner"), query_size), chain)


def softmax(scores: Value, query: Value, real: Value) -> Value:
    """Return the softmax over the real positions."""
    del query
    return op("Softmax", scores + closed(real), axis=-1)


def _sigmoid(scores: Value, query: Value, real: Value) -> Value:
    del query
    return op("Sigmoid", scores + closed(real))


def _most_probable(scores: Value, query: Value, real: Value) -> Value:
    """Return 1 for the position with the highest score, the first of several."""
    del query
    best = op("ArgMax", scores + closed(real), axis=-1, keepdims=1)
    return op("Cast", op("Equal", best, places(scores, 2)), to=FLOAT)


def _sparsemax(scores: Value, query: Value, real: Value) -> Value:
    """Return max(score - threshold, 0), with the threshold for which the weights sum to 1."""
    del query
    scores = scores + op("Max", closed(real), -1e6)
    ranked, _ = ops("TopK", scores, size(scores, 2), outputs=2, axis=-1)
    sums = op("CumSum", ranked, 2)
    ranks = op("Cast", places(scores, 2) + 1, to=FLOAT)
    is_in = op("Cast", op("Greater", 1.0 + ranks * ranked, sums), to=FLOAT)
    number = op("ReduceSum", is_in, axes(-1), keepdims=1)
    total = op("ReduceSum", is_in * ranked, axes(-1), keepdims=1)
    return op("Relu", scores - (total - 1.0) / number)


def _near_place(weights: Weights, window: float, scores: Value, query: Value, real: Value) -> Value:
    """Return the softmax around the position that the query predicts."""
    hidden = op("Tanh", linear(query, weights["0.weight"]))
    share = op("Sigmoid", linear(hidden, weights["2.weight"]))  # (N, Q, 1)
    number = op("ReduceSum", op("Cast", real, to=FLOAT), axes(1), keepdims=1)
    center = share * unsqueeze(op("Relu", number - 1.0), 2)
    distance = (op("Cast", places(scores, 2), to=FLOAT) - center) / window
    return softmax(scores - 2.0 * distance * distance, query, real)


def _segments(
    transitions: np.ndarray,
    total: float | None,
    scores: Value,
    query: Value,
    real: Value,
) -> Value:
    """Return p(state of s = read) in a chain of the states skip and read."""
    del query
    (t00, t01), (t10, t11) = transitions.tolist()
    graph = max((scores.graph, real.graph), key=lambda each: each.depth)
    body = Graph("chain", graph)

    def follow(x: Value, one: float, both: float, none: float, only: float) -> Value:
        """Return log(e^one + e^(x + both)) - log(e^none + e^(x + only))."""
        read, skip = softplus(x + (both - one)), softplus(x + (only - none))
        return read - skip + (one - none)

    sides = {"left": (t01, t11, t00, t10), "right": (t10, t11, t00, t01)}
    heard = {side: body.input(side, FLOAT, ["N", "Q"]) for side in sides}
    here = {side: body.input(f"{side}_score", FLOAT, ["N", "Q"]) for side in sides}
    exists = {side: body.input(f"{side}_real", FLOAT, ["N"]) for side in sides}
    for side, odds in sides.items():
        said = follow(heard[side] + here[side], *odds)
        is_real = unsqueeze(op("Greater", exists[side], 0.0), 1)
        body.output(f"{side}_next", op("Where", is_real, said, heard[side]), FLOAT, ["N", "Q"])
    for side in sides:
        body.output(f"{side}_heard", heard[side], FLOAT, ["N", "Q"])
    mask = op("Cast", real, to=FLOAT)
    zero = op("Expand", 0.0, op("Shape", scores, end=2))
    _, _, left, right = ops(
        "Scan",
        zero,
        zero,
        scores,
        scores,
        mask,
        mask,
        outputs=4,
        body=body.proto(),
        num_scan_inputs=4,
        scan_input_axes=[2, 2, 1, 1],
        scan_input_directions=[0, 1, 0, 1],
        scan_output_axes=[2, 2],
        scan_output_directions=[0, 1],
    )
    weights = op("Sigmoid", scores + left + right) * unsqueeze(mask, 1)
    if total is None:
        return weights
    return weights * total / op("ReduceSum", weights, axes(-1), keepdims=1)


def shifted(
    scores: Value, head: Value, before: Value, query: Value, real: Value, most: int
) -> Value:
    """Move the previous weights along the positions (location addressing, Graves et al. 2014, eq. 5 to 9).

    Args:
        scores: Scores by content `(N, Q, S)`.
        head: Gate, sharpness and shifts of each query `(N, Q, 2 + 2 * most + 1)`.
        before: Weights of the previous step `(N, Q, S)`.
        query: Queries `(N, Q, D)`.
        real: True on real positions `(N, S)`.
        most: Largest shift.

    Returns:
        The weights of the step.
    """
    width = 2 * most + 1
    gate, sharpness, shifts = ops("Split", head, axes(1, 1, width), outputs=3, axis=-1)
    gate, shifts = op("Sigmoid", gate), op("Softmax", shifts, axis=-1)
    mixed = gate * softmax(scores, query, real) + (1.0 - gate) * before
    padded = op("Pad", mixed, axes(0, 0, most, 0, 0, most), 0.0)
    end = size(scores, 2)
    moved = None
    for number, part in enumerate(ops("Split", shifts, outputs=width, axis=-1, num_outputs=width)):
        start = axes(2 * most - number)
        some = part * op("Slice", padded, start, end + start, axes(2))
        moved = some if moved is None else moved + some
    assert moved is not None
    some = op("Greater", moved, 1e-20)
    logs = (1.0 + softplus(sharpness)) * log(op("Where", some, moved, 1.0))
    return softmax(op("Where", some, logs, float("-inf")), query, real)


def expected(weights: Value, values: Value) -> Value:
    """Return the context: the weighted sum of values `(N, S, V)`."""
    return weights @ values


def column(value: Value) -> Value:
    """Remove the last axis, of size 1."""
    return squeeze(value, -1)
