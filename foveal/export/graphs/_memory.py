"""The encoded input of a graph: the values of its positions, and their mask."""

from typing import NamedTuple

from ._graph import Value, axes, op, squeeze, unsqueeze


class Source(NamedTuple):
    """The input of an encoder."""

    tokens: Value  # (B, S), 0 on padding
    lengths: Value  # (B), int32
    real: Value  # (B, S), True on real positions
    spelling: Value | None = None  # (B, S, F), the spelling features of words


class MemoryGraph(NamedTuple):
    """What an encoder gives to a decoder."""

    values: Value  # (B, S, V), 0 on padding
    summary: Value  # (B, V)
    real: Value  # (B, S)
    tokens: Value | None = None  # (B, S), the tokens that can be copied


def mean_of(values: Value, real: Value) -> Value:
    """Return the mean of the values over the real positions `(B, V)`; 0 if there are none."""
    mask = op("Cast", real, to=1)
    # A product, because the order of the terms of ReduceSum depends on the number of items.
    total = squeeze(unsqueeze(mask, 1) @ values, 1)
    return total / op("Max", op("ReduceSum", mask, axes(1), keepdims=1), 1.0)


def closed(real: Value) -> Value:
    """Return 0 for real positions and -inf for padding, to add to the scores of any number of queries: `(B, 1, S)`."""
    return unsqueeze(op("Where", real, 0.0, float("-inf")), 1)


def without_padding(values: Value, real: Value) -> Value:
    """Set the values of padding to 0."""
    return values * unsqueeze(op("Cast", real, to=1), 2)
