"""Confidence intervals of scores, and significance tests of the difference between two systems.

Intervals come from the bootstrap: draw examples with replacement and compute the score of each draw (Efron 1979; for
BLEU, Koehn 2004). Two systems on the same examples are compared on the same draws. Fractions of examples have a Wilson
interval instead, because the bootstrap of 0 errors in 100 words has no width.

Axes: N examples, R draws.
"""

from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..errors import ShapeError
from ._statistics import Statistics

NUM_DRAWS = 1000
LEVEL = 0.95
_BLOCK = 4_000_000  # counts of examples in memory at a time


class Metric(NamedTuple):
    """A score with its confidence interval and the signature of its computation."""

    value: float
    low: float
    high: float
    signature: str


class Comparison(NamedTuple):
    """The comparison of system b with system a on the same examples."""

    difference: float  # value of b - value of a
    low: float
    high: float
    p_value: float  # two-sided, for the hypothesis of no difference


def measure(
    statistics: Statistics, *, level: float = LEVEL, num_draws: int = NUM_DRAWS, seed: int = 0
) -> Metric:
    """Compute the value of a metric and its confidence interval.

    Args:
        statistics: Metric on all examples.
        level: Confidence level of the interval.
        num_draws: Number of bootstrap samples. A fraction of examples needs none: its interval is Wilson's.
        seed: Seed of the bootstrap.

    Returns:
        The value, the bounds of the interval and the signature.
    """
    low, high = (
        _wilson(statistics, level)
        if statistics.share
        else _percentiles(_draws(num_draws, seed, statistics)[0], level)
    )
    return Metric(statistics.value, low, high, statistics.signature)


def compare(
    a: Statistics,
    b: Statistics,
    *,
    level: float = LEVEL,
    num_draws: int = NUM_DRAWS,
    seed: int = 0,
) -> Comparison:
    """Compare two systems with the paired bootstrap (Koehn 2004): the difference over draws of examples.

    Args:
        a: Metric of the first system.
        b: Metric of the second system, on the same examples.
        level: Confidence level of the interval.
        num_draws: Number of bootstrap samples.
        seed: Seed of the bootstrap.

    Returns:
        The value of `b` minus the value of `a`, with its interval and a two-sided p-value.

    Raises:
        ShapeError: The metrics, or their numbers of examples, differ.
    """
    if a.num_examples != b.num_examples or a.name != b.name:
        raise ShapeError(
            f"compare: got {a.name} on {a.num_examples} examples and {b.name} on {b.num_examples}, "
            f"expected one metric on the same examples. Score both systems on the same file."
        )
    first, second = _draws(num_draws, seed, a, b)
    differences = second - first
    low, high = _percentiles(differences, level)
    # Count the observed sample as one more draw, so no p-value is 0.
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    p_value = min(1.0, 2 * (tail + 1) / (num_draws + 1))
    return Comparison(b.value - a.value, low, high, float(p_value))


def _draws(num_draws: int, seed: int, *of: Statistics) -> list[Float[np.ndarray, " R"]]:
    """Compute the score of each draw for every system on the same draws."""
    scores: list[list[Float[np.ndarray, " r"]]] = [[] for _ in of]
    for block in _counts(of[0].num_examples, num_draws, seed):
        for some, statistics in zip(scores, of, strict=True):
            some.append(statistics.score(block @ statistics.rows))
    return [np.concatenate(some) for some in scores]


def _counts(num_examples: int, num_draws: int, seed: int) -> Iterator[Float[np.ndarray, "R N"]]:
    """Yield the count of each example in each draw, one block of draws at a time."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _BLOCK // num_examples)
    for start in range(0, num_draws, at_once):
        size = min(at_once, num_draws - start)
        drawn = generator.integers(num_examples, size=(size, num_examples))
        drawn += np.arange(size)[:, None] * num_examples
        counts = np.bincount(drawn.ravel(), minlength=size * num_examples)
        yield counts.reshape(size, num_examples).astype(np.float64)


def _percentiles(scores: Float[np.ndarray, " R"], level: float) -> tuple[float, float]:
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _wilson(statistics: Statistics, level: float) -> tuple[float, float]:
    """Compute the Wilson interval of a fraction, in percent (Wilson 1927; Brown et al. 2001)."""
    n, share = statistics.num_examples, statistics.value / 100
    z = NormalDist().inv_cdf((1 + level) / 2)
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return 100 * max(0.0, center - half), 100 * min(1.0, center + half)
