"""Comparisons of two models over seeds: the difference of their means, its interval, and the winner.

    d = mean(a) - mean(b)        s^2 = var(a) / n_a + var(b) / n_b        interval: d - t s to d + t s

Here t is the 97.5 % quantile of Student's t distribution, with the degrees of freedom of Welch 1947, because
seeds of one model often vary far more than seeds of the other.
"""

import math
from collections.abc import Sequence
from functools import cache
from statistics import mean, variance
from typing import NamedTuple

from docs_records import RESULTS, unbroken

from benchmarks.results import Results, Row, Sense

NEITHER, ONE_SEED = "neither", "undecided: one seed"
SIMPSON_INTERVALS = 200  # more change no digit of a table


class Side(NamedTuple):
    """One of the two models: its name on the page, and the name of its row in the results file."""

    name: str
    row: str


class Comparison(NamedTuple):
    """Two models on one task."""

    task: str
    metric: str
    sense: Sense  # which way is better
    results: str  # a file in results/
    structured: Side
    baseline: Side

    def values(self, side: Side) -> tuple[float, ...]:
        """Return the figures of one model, by seed, in no order."""
        return seed_values(rows(self.results)[side.row])

    @property
    def difference(self) -> float:
        """Return how much higher the mean of the structured model is."""
        return mean(self.values(self.structured)) - mean(self.values(self.baseline))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the difference over seeds; None with one seed."""
        return welch_interval(self.values(self.structured), self.values(self.baseline))

    @property
    def gain(self) -> float:
        """Return the difference, positive where the structured model is better."""
        return self.difference if self.sense == ">=" else -self.difference

    @property
    def winner(self) -> str:
        """Return the better model, if the interval excludes 0."""
        if self.interval is None:
            return ONE_SEED
        if self.interval[0] <= 0 <= self.interval[1]:
            return NEITHER
        return self.structured.name if self.gain > 0 else self.baseline.name

    @property
    def seeds(self) -> str:
        """Return the number of seeds, and whether all of one model are ahead of all of the other."""
        first, second = self.values(self.structured), self.values(self.baseline)
        if self.interval is None:
            return "1"
        count = f"{len(first)} + {len(second)}"
        if self.sense == "<=":
            first, second = [-value for value in first], [-value for value in second]
        if min(first) > max(second):
            return f"{count}, all ahead"
        return f"{count}, all behind" if max(first) < min(second) else f"{count}, overlapping"


def with_interval(value: float, interval: tuple[float, float] | None) -> str:
    """Return a difference and its interval as text.

    Examples:
        >>> [text.split() for text in (with_interval(1.25, (0.5, 2.0)), with_interval(-0.01, None))]
        [['+1.2', '(0.5', 'to', '2.0)'], ['0.0', '(no', 'interval)']]
    """
    text = "0.0" if round(value, 1) == 0 else f"{value:+.1f}"
    between = "no interval" if interval is None else f"{interval[0]:.1f} to {interval[1]:.1f}"
    return f"{text} ({unbroken(between)})".replace("-", "\N{MINUS SIGN}")


@cache
def rows(results: str) -> dict[str, Row]:
    """Return the rows of one results file by name."""
    return {row.name: row for row in Results.load(RESULTS / f"{results}.json").rows}


def seed_values(row: Row) -> tuple[float, ...]:
    """Return the values of all seeds from the mean, the lowest and the highest, which is all that a file keeps.

    With one seed, a range is over folds or restarts and does not count.
    """
    if len(row.seeds) == 1:
        return (row.value,)
    if row.spread is None or len(row.seeds) > 3:
        raise ValueError(
            f"{row.name}: the values of {len(row.seeds)} seeds do not follow from their mean and range."
        )
    low, high = row.spread
    return (low, high) if len(row.seeds) == 2 else (low, 3 * row.value - low - high, high)


def welch_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of mean(first) - mean(second); None if one of them has one value.

    Examples:
        >>> low, high = welch_interval((27.5, 21.0, 19.0, 23.6), (27.1, 22.0, 20.8, 23.4))
        >>> f"{low:.2f} {high:.2f}"
        '-6.26 5.16'
    """
    if min(len(first), len(second)) < 2:
        return None
    difference = mean(first) - mean(second)
    parts = [variance(values) / len(values) for values in (first, second)]
    if sum(parts) == 0:
        return difference, difference
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)
    )
    half = t_quantile(0.975, freedom) * math.sqrt(sum(parts))
    return difference - half, difference + half


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t distribution for a probability above one half.

    Examples:
        >>> [round(t_quantile(0.975, freedom), 3) for freedom in (2, 4, 30)]
        [4.303, 2.776, 2.042]
    """
    low, high = 0.0, math.pi / 2  # t = sqrt(freedom) tan(angle)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_cdf(middle, freedom) < probability else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _t_cdf(angle: float, freedom: float) -> float:
    """P(t <= sqrt(freedom) tan(angle)): one half plus the integral of c cos^(freedom - 1), by Simpson's rule."""
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    step = angle / SIMPSON_INTERVALS
    heights = [math.cos(k * step) ** (freedom - 1) for k in range(SIMPSON_INTERVALS + 1)]
    total = heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return 0.5 + math.exp(log_scale) / math.sqrt(math.pi) * total * step / 3
