"""Slices of the test set: the main metric by kind, by length of the source, and by rare tokens in it."""

from collections import Counter
from collections.abc import Container, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from ._intervals import Metric, measure
from ._statistics import Statistics

NUM_LENGTHS = 4
NUM_KINDS = 12


class Slice(NamedTuple):
    """A subset of the examples, and the main metric on it."""

    name: str
    num_examples: int
    metric: Metric


def kind_slices(statistics: Statistics, kinds: Sequence[str | None]) -> tuple[Slice, ...]:
    """Return a slice for each kind of example, the most frequent first. Examples without a kind are in no slice.

    Args:
        statistics: The metric on all examples.
        kinds: The kind of each example.

    Returns:
        The slices of the most frequent kinds.
    """
    counts = Counter(kind for kind in kinds if kind is not None)
    return tuple(
        _slice(kind, statistics, np.array([each == kind for each in kinds]))
        for kind, _ in counts.most_common(NUM_KINDS)
    )


def length_slices(
    statistics: Statistics, lengths: Sequence[int], *, unit: str = "symbols"
) -> tuple[Slice, ...]:
    """Return up to four slices with about the same number of examples, short to long.

    Args:
        statistics: The metric on all examples.
        lengths: The length of each example.
        unit: The unit of the lengths, for the names of the slices.

    Returns:
        The slices, with their values and sizes.
    """
    parts = length_parts(lengths, unit=unit)
    return tuple(_slice(name, statistics, chosen) for name, chosen in parts.items())


def length_parts(
    lengths: Sequence[int], *, unit: str = "symbols"
) -> dict[str, Bool[np.ndarray, " N"]]:
    """Return a mask of the examples for each slice of `length_slices`, by name.

    Args:
        lengths: Length of each example.
        unit: Unit of the lengths, for the names of the slices.

    Returns:
        Masks that are True on the examples of a slice, short to long.

    Examples:
        >>> {name: chosen.sum().item() for name, chosen in length_parts([5, 1, 2, 2, 9]).items()}
        {'1 to 2 symbols': 3, '5 symbols': 1, '9 symbols': 1}
    """
    sizes = np.asarray(lengths)
    bounds = np.quantile(sizes, np.linspace(0, 1, NUM_LENGTHS + 1)[1:], method="lower")
    found = dict[str, Bool[np.ndarray, " N"]]()
    for below, up_to in pairwise([sizes.min() - 1, *np.unique(bounds)]):
        chosen = (sizes > below) & (sizes <= up_to)
        if chosen.any():
            first = int(sizes[chosen].min())
            span = f"{first}" if first == up_to else f"{first} to {int(up_to)}"
            found[f"{span} {unit}"] = chosen
    return found


def rarity_slices(
    statistics: Statistics,
    texts: Sequence[Sequence[str]],
    *,
    known: Container[str],
    rare: Container[str],
) -> tuple[Slice, ...]:
    """Return slices of examples with an unknown token, with a rare but no unknown token, and with only common
    tokens. Empty slices are omitted.

    Args:
        statistics: The metric on all examples.
        texts: The tokens of each example.
        known: The tokens in the vocabulary of the model.
        rare: Tokens that occur in the training set, but rarely.

    Returns:
        The slices, with their values and sizes.
    """
    unknown = np.array([any(symbol not in known for symbol in text) for text in texts])
    unusual = np.array([any(symbol in rare for symbol in text) for text in texts])
    parts = {
        "with unknown tokens": unknown,
        "with rare tokens": unusual & ~unknown,
        "only frequent tokens": ~unusual & ~unknown,
    }
    return tuple(_slice(name, statistics, chosen) for name, chosen in parts.items() if chosen.any())


def _slice(name: str, statistics: Statistics, chosen: Bool[np.ndarray, " N"]) -> Slice:
    some = statistics.subset(chosen)
    return Slice(name, some.num_examples, measure(some))
