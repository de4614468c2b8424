"""A model of batch durations, fitted to the computed batches.

    seconds = base + slope * size

Seconds are processor time, not wall-clock time. A busy machine, or a process that was stopped for a while, must
not make a model look slow: the queue would reject requests long afterwards.

A batch of one takes nearly as long as a batch of ten, so seconds per input are a poor measure of a queue. The two
numbers are an exponentially weighted least-squares fit. Each kind of batch (one model, one search setting, one
size class) has a separate line: a line through short words and long texts together would be wrong for both.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Any, NamedTuple, final

_KEPT = 0.95  # weight of all earlier batches, against the next batch
# Batches of nearly equal size do not determine the fixed part of their time.
_LEAST_SPREAD = 1e-3
# Before the first batch of a kind: less than any model takes, to reject nothing because of it.
_FIRST_BASE, _FIRST_SLOPE = 1e-3, 2e-6


class Timed(NamedTuple):
    """The result of a computation, and its processor time."""

    value: Any
    seconds: float


@final
class Pace:
    """The fitted line."""

    def __init__(self) -> None:
        self.base, self.slope = 0.0, 0.0
        self._weight = self._size = self._seconds = self._squares = self._products = 0.0

    def saw(self, size: float, seconds: float) -> None:
        """Record the duration of a batch of this size."""
        self._weight = _KEPT * self._weight + 1.0
        self._size = _KEPT * self._size + size
        self._seconds = _KEPT * self._seconds + seconds
        self._squares = _KEPT * self._squares + size * size
        self._products = _KEPT * self._products + size * seconds
        size, seconds = self._size / self._weight, self._seconds / self._weight
        spread = self._squares / self._weight - size * size
        slope = 0.0
        if spread > _LEAST_SPREAD * size * size:
            slope = (self._products / self._weight - size * seconds) / spread
        self.slope = min(max(slope, 0.0), seconds / size)  # neither part is negative
        self.base = seconds - self.slope * size

    def seconds(self, num_batches: float, size: float) -> float:
        """Estimate the time of this many batches of this total size.

        Args:
            num_batches: Number of batches.
            size: Total size of the batches.

        Returns:
            The estimated time in seconds.

        Examples:
            >>> pace = Pace()
            >>> for size in (10.0, 20.0, 30.0): pace.saw(size, 1.0 + 0.1 * size)
            >>> round(pace.seconds(2.0, 100.0), 3)
            12.0
        """
        return num_batches * self.base + size * self.slope


@final
class Paces:
    """A pace for each kind of batch.

    Args:
        most: The maximum number of items in a batch.
        most_size: The maximum size of a batch of more than one item.
    """

    def __init__(self, *, most: int, most_size: float) -> None:
        self._most, self._most_size = most, most_size
        self._paces = defaultdict[Hashable, Pace](Pace)

    def saw(self, kind: Hashable, size: float, seconds: float) -> None:
        """Record the duration of a batch of this kind and size."""
        self._paces[kind].saw(size, seconds)

    def knows(self, kind: Hashable) -> bool:
        """Return whether a batch of this kind was recorded."""
        return kind in self._paces

    def batch(self, kind: Hashable, size: float) -> float:
        """Estimate the time of a batch of this kind and size."""
        if kind not in self._paces:
            return _FIRST_BASE + size * _FIRST_SLOPE
        return self._paces[kind].seconds(1.0, size)

    def item(self, kind: Hashable, size: float) -> float:
        """Return the seconds that one more item of this kind adds to full batches."""
        together = min(float(self._most), max(1.0, self._most_size / size))
        if kind not in self._paces:
            return _FIRST_BASE / together + size * _FIRST_SLOPE
        return self._paces[kind].seconds(1.0 / together, size)
