"""The base class of user-defined metrics."""

from abc import abstractmethod
from collections.abc import Sequence

from ..specs import AbstractSpec
from ._statistics import Statistics


class AbstractMetricSpec(AbstractSpec):
    """A user-defined metric. Derive from it, and list it among the `metrics` of a task spec: `fit` and `evaluate`
    then report it next to the built-in metrics of the task, with a confidence interval.
    """

    __slots__ = ()

    @abstractmethod
    def measure(self, references: Sequence[str], outputs: Sequence[str]) -> Statistics:
        """Measure the outputs against their references.

        Args:
            references: References, one per output.
            outputs: Outputs of the model.

        Returns:
            The metric, as statistics of each output.
        """
