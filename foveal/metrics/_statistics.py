"""A metric as sums of counts: one row for each example, and a score of the sum of any rows.

    value = score( sum over i of rows[i] )

Error rates, corpus BLEU and macro F1 all have this form. Such a metric can be computed on a slice of the examples and
resampled for a confidence interval without reading the outputs again.

Axes: N examples, F counts of an example, R sums of rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from ..errors import ShapeError

# Maps sums of rows to scores, many at a time.
Score = Callable[[Float[np.ndarray, "R F"]], Float[np.ndarray, " R"]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Statistics:
    """A metric on N examples.

    Examples:
        >>> right = Statistics(
        ...     name="accuracy", rows=np.array([[1.0], [0.0], [1.0], [1.0]]),
        ...     score=lambda sums: 25 * sums[:, 0], signature="by hand", higher_is_better=True,
        ... )
        >>> right.value
        75.0
    """

    name: str
    rows: Float[np.ndarray, "N F"]
    score: Score
    signature: str  # the software and its options, enough to reproduce the figure elsewhere
    higher_is_better: bool
    share: bool = False  # True for the fraction of rows that are 1, not 0, in percent

    @property
    def num_examples(self) -> int:
        """The number of examples, N."""
        return len(self.rows)

    @property
    def value(self) -> float:
        """The metric on all examples."""
        return float(self.score(self.rows.sum(0, keepdims=True))[0])

    def subset(self, chosen: Bool[np.ndarray, " N"]) -> "Statistics":
        """Return the metric on a subset of the examples.

        Args:
            chosen: True for the examples to keep.

        Returns:
            The same metric with fewer rows.
        """
        return replace(self, rows=self.rows[chosen])


def each_of(references: Sequence[str | Sequence[str]]) -> list[list[str]]:
    """Return the references of each example as a list; a single reference may be given as a plain string."""
    return [[one] if isinstance(one, str) else list(one) for one in references]


def check_pairs(metric: str, references: int, hypotheses: int) -> None:
    """Raise an error unless there is one hypothesis for each reference, and at least one."""
    if references != hypotheses or not references:
        raise ShapeError(
            f"{metric}: got {references} references and {hypotheses} hypotheses, expected equal "
            f"numbers of at least 1. Use an empty string for an empty output."
        )


def check_labels(
    metric: str, references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> None:
    """Raise an error if there is no example, or if an example has too few or too many predicted labels."""
    check_pairs(metric, len(references), len(hypotheses))
    for number, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True), 1):
        if len(reference) != len(hypothesis):
            raise ShapeError(
                f"{metric}: example {number} has {len(reference)} labels and {len(hypothesis)} predicted labels, "
                f"expected equal numbers. Predict one label for each token."
            )
