"""Transformer layers as graphs: normalization, positions, self-attention with any head that has a graph, feed-forward.

Heads with one attention are a batch of their own, so every attention sees items, queries and positions.

Axes: B items, T tokens, D width of a token's vector, H heads, h the heads of one attention, d width of a head.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...models import TransformerEncoderSpec
from ...networks.encoders.transformer._positions import Positions
from ._attentions import AnyAttentionSpec, AttentionGraph, attention_graph
from ._graph import FLOAT, Value, axes, linear, op, ops, places, size, unsqueeze
from ._weights import Weights

_LONGEST = 10_000.0  # positions per radian of the slowest pair of features


class HeadGroup(NamedTuple):
    """The heads of a layer that share one attention."""

    attention: AttentionGraph
    num_heads: int


class Turn(NamedTuple):
    """The rotation of rotary positions: factors of a row, and of the row with swapped halves."""

    own: Value  # (T, d)
    swapped: Value  # (T, d)


def head_groups(
    heads: Sequence[tuple[AnyAttentionSpec, int]], weights: Weights, head_size: int
) -> list[HeadGroup]:
    """Return the heads of a layer, grouped by attention.

    Args:
        heads: Spec of each attention and the number of its heads.
        weights: Weights of the layer's attentions.
        head_size: Width of a head.

    Returns:
        One group for each attention.
    """
    return [
        HeadGroup(attention_graph(spec, weights.at(f"attentions.{number}.scorer"), head_size), some)
        for number, (spec, some) in enumerate(heads)
    ]


def emit_layers(
    spec: TransformerEncoderSpec, weights: Weights, vectors: Value, real: Value
) -> Value:
    """Run all layers of an encoder over vectors `(B, T, E)`; the result is not normalized."""
    if "project.weight" in weights:
        vectors = linear(vectors, weights["project.weight"], weights["project.bias"])
    positions = places(vectors, 1)
    rows = placed(vectors, positions, spec.positions, weights)
    head_size = spec.model_size // spec.num_heads
    turn = rotation(positions, head_size) if spec.positions == "rotary" else None
    for number in range(1, spec.num_layers + 1):
        layer = weights.at(f"layers.{number - 1}")
        heads = [(each.attention, each.num_heads) for each in spec._heads_of(number)]
        groups = head_groups(heads, layer, head_size)
        normed = layer_norm(rows, layer.at("attention_norm"))
        projected = linear(normed, layer["project.weight"], layer["project.bias"])
        query, keys, values = (
            split_heads(part, spec.num_heads)
            for part in ops("Split", projected, outputs=3, axis=-1, num_outputs=3)
        )
        if turn is not None:
            query, keys = rotated(query, turn), rotated(keys, turn)
        contexts = list[Value]()
        for group, (one, key, value) in in_groups(groups, query, keys, values):
            mask = for_heads(real, group.num_heads)
            found = group.attention.scorer.keys(folded(key))
            scores = group.attention.scorer.scores(folded(one), found)
            read = group.attention.distribute(scores, folded(one), mask)
            contexts.append(unfolded(read @ folded(value), group.num_heads))
        rows = rows + linear(joined_heads(contexts), layer["output.weight"], layer["output.bias"])
        rows = fed_forward(rows, layer)
    return rows


def layer_norm(rows: Value, weights: Weights) -> Value:
    """Normalize the vectors along their last axis."""
    return op("LayerNormalization", rows, weights["weight"], weights["bias"], axis=-1, epsilon=1e-5)


def fed_forward(rows: Value, weights: Weights) -> Value:
    """Add the output of the feed-forward network, x + W2 gelu( W1 norm(x) + b1 ) + b2."""
    normed = layer_norm(rows, weights.at("feed_forward_norm"))
    hidden = linear(normed, weights["widen.weight"], weights["widen.bias"])
    hidden = hidden * (op("Erf", hidden * math.sqrt(0.5)) * 0.5 + 0.5)
    return rows + linear(hidden, weights["narrow.weight"], weights["narrow.bias"])


def placed(vectors: Value, positions: Value, kind: Positions, weights: Weights) -> Value:
    """Scale the vectors and add their positions, as `foveal.networks` does; `positions` is `(T)`."""
    width = weights["norm.weight"].shape[0]
    if kind == "learned":
        vectors = vectors + op("Gather", weights["learned.weight"], positions)
    vectors = vectors * math.sqrt(width)
    if kind != "sinusoidal":
        return vectors
    angles = _angles(positions, -(-width // 2))
    table = op("Concat", op("Sin", angles), op("Cos", angles), axis=-1)
    return vectors + op("Slice", table, axes(0), axes(width), axes(1))


def rotation(positions: Value, head_size: int) -> Turn:
    """Return the rotation of queries and keys at each position."""
    angles = _angles(positions, head_size // 2)
    cos, sin = op("Cos", angles), op("Sin", angles)
    return Turn(op("Concat", cos, cos, axis=-1), op("Concat", -sin, sin, axis=-1))


def rotated(rows: Value, by: Turn) -> Value:
    """Rotate the pairs of features of rows `(..., T, d)`."""
    first, second = ops("Split", rows, outputs=2, axis=-1, num_outputs=2)
    return rows * by.own + op("Concat", second, first, axis=-1) * by.swapped


def split_heads(rows: Value, num_heads: int) -> Value:
    """Return `(B, H, T, d)` for rows `(B, T, D)`."""
    return op("Transpose", op("Reshape", rows, axes(0, 0, num_heads, -1)), perm=[0, 2, 1, 3])


def in_groups(
    groups: Sequence[HeadGroup], *parts: Value
) -> Iterator[tuple[HeadGroup, tuple[Value, ...]]]:
    """Yield each group with its heads of every part `(B, H, T, d)`."""
    if len(groups) == 1:
        yield groups[0], parts
        return
    counts = axes(*(group.num_heads for group in groups))
    split = [ops("Split", part, counts, outputs=len(groups), axis=1) for part in parts]
    yield from zip(groups, zip(*split, strict=True), strict=True)


def folded(heads: Value) -> Value:
    """Return `(B * h, T, d)` for heads `(B, h, T, d)`."""
    return op("Reshape", heads, op("Concat", axes(-1), op("Shape", heads, start=2), axis=0))


def unfolded(rows: Value, num_heads: int) -> Value:
    """Return `(B, h, T, d)` for rows `(B * h, T, d)`."""
    shape = op("Concat", axes(-1, num_heads), op("Shape", rows, start=1), axis=0)
    return op("Reshape", rows, shape)


def for_heads(real: Value, num_heads: int) -> Value:
    """Repeat the mask `(B, T)` for each head: `(B * h, T)`."""
    shape = op("Concat", size(real, 0), axes(num_heads), size(real, 1), axis=0)
    repeated = op("Expand", unsqueeze(real, 1), shape)
    return op("Reshape", repeated, op("Concat", axes(-1), size(real, 1), axis=0))


def joined_heads(contexts: Sequence[Value]) -> Value:
    """Return `(B, T, D)` for the contexts `(B, h, T, d)` of all groups."""
    joined = op("Concat", *contexts, axis=1) if len(contexts) > 1 else contexts[0]
    return op("Reshape", op("Transpose", joined, perm=[0, 2, 1, 3]), axes(0, 0, -1))


def _angles(positions: Value, num_pairs: int) -> Value:
    """Return the angle of each pair of features at each position `(T, N)`."""
    pairs = np.arange(num_pairs, dtype=np.float32)
    speeds = (_LONGEST ** (-pairs / max(1, num_pairs))).astype(np.float32)
    return unsqueeze(op("Cast", positions, to=FLOAT), 1) * speeds
