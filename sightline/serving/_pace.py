"""How long batches take, learnt from those that were done.

    seconds = base + slope * cost

A batch of one takes nearly as long as one of ten, so that seconds per input say little of a queue. The two
numbers are those of least squares, where every batch makes the ones before count less.
"""

from typing import final

_KEPT = 0.95  # weight of all that was seen before, against the next batch
# Of batches that are all alike it cannot be told which part of their time is which.
_LEAST_SPREAD = 1e-3


@final
class Pace:
    """The line through what was seen."""

    def __init__(self) -> None:
        self.base, self.slope = 0.0, 0.0
        self._weight = self._cost = self._seconds = self._squares = self._products = 0.0

    def saw(self, cost: float, seconds: float) -> None:
        """A batch of this cost took so long."""
        self._weight = _KEPT * self._weight + 1.0
        self._cost = _KEPT * self._cost + cost
        self._seconds = _KEPT * self._seconds + seconds
        self._squares = _KEPT * self._squares + cost * cost
        self._products = _KEPT * self._products + cost * seconds
        cost, seconds = self._cost / self._weight, self._seconds / self._weight
        spread = self._squares / self._weight - cost * cost
        slope = 0.0
        if spread > _LEAST_SPREAD * cost * cost:
            slope = (self._products / self._weight - cost * seconds) / spread
        self.slope = min(max(slope, 0.0), seconds / cost)  # neither part takes less than no time
        self.base = seconds - self.slope * cost

    def seconds(self, num_batches: float, cost: float) -> float:
        """How long so many batches of this cost in all would take.

        >>> pace = Pace()
        >>> for cost in (10.0, 20.0, 30.0): pace.saw(cost, 1.0 + 0.1 * cost)
        >>> round(pace.seconds(2.0, 100.0), 3)
        12.0
        """
        return num_batches * self.base + cost * self.slope
