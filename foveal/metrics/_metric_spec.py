"""What a metric from outside of the package gives."""

from abc import abstractmethod
from collections.abc import Sequence

from ..specs import AbstractSpec
from ._statistics import Statistics


class AbstractMetricSpec(AbstractSpec):
    """A metric. Derive from it, and list it among the `metrics` of a task spec: `fit` and `evaluate` then
    report it next to the task's own, with an interval.
    """

    __slots__ = ()

    @abstractmethod
    def measure(self, references: Sequence[str], outputs: Sequence[str]) -> Statistics:
        """Measure the outputs against their references."""
