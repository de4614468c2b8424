"""Results of an evaluation. Intervals, slices and curves are computed on demand, so a validation during training
computes only the score.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...data import Example
from ...metrics._intervals import Metric, measure
from ...metrics._reliability import Reliability, RiskCoverage, reliability, risk_coverage
from ...metrics._slices import Slice, kind_slices, length_slices, rarity_slices
from ...metrics._statistics import Statistics
from ._prediction import Prediction


class MainMetric(NamedTuple):
    """The score that a task is tuned for."""

    name: str
    higher_is_better: bool


class Baseline(NamedTuple):
    """An answer that needs no model, such as the most frequent label, and its score."""

    rule: str
    value: float  # the value of the main metric


class Sample(NamedTuple):
    """One example with the output of the model."""

    source: str
    reference: str
    prediction: Prediction


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """Scores of free-running predictions."""

    main: MainMetric
    statistics: Mapping[str, Statistics]
    examples: Sequence[Example]
    references: Sequence[str]
    predictions: Sequence[Prediction]
    symbols: Sequence[Sequence[str]]  # the tokens of each source
    known: Container[str]  # source tokens in the vocabulary of the model
    rare: Container[str]
    kinds: Sequence[str | None] = ()  # the kind of each example, if there are kinds
    trivial: Callable[[], Sequence[Baseline]] = tuple  # baselines that need no model

    @property
    def value(self) -> float:
        """The main metric."""
        return self.statistics[self.main.name].value

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """Every metric with its interval, the main one first."""
        return {name: measure(statistics) for name, statistics in self.statistics.items()}

    @cached_property
    def baseline(self) -> Baseline | None:
        """Return the best baseline that needs no model, or None if the task has no baseline."""
        sign = 1 if self.main.higher_is_better else -1
        return max(self.trivial(), key=lambda one: sign * one.value, default=None)

    @property
    def warning(self) -> str | None:
        """A warning if the score is no better than the baseline; None if it is better or perfect."""
        baseline, sign = self.baseline, 1 if self.main.higher_is_better else -1
        perfect = 100.0 if self.main.higher_is_better else 0.0
        if baseline is None or self.value == perfect:
            return None
        if sign * self.value > sign * baseline.value:
            return None
        return (
            f"{self.main.name} {self.value:.2f} is no better than {baseline.value:.2f}, the score of "
            f"a baseline without a model: {baseline.rule} for every example. Train longer, add more "
            f"examples, or check that the targets belong to their sources."
        )

    @cached_property
    def mistakes(self) -> list[tuple[Example, str, Prediction]]:
        """Return the wrong predictions with their examples and references, the most confident first."""
        rows = zip(self.examples, self.references, self.predictions, strict=True)
        return sorted(
            (row for row in rows if row[1] != row[2].output), key=lambda row: -row[2].confidence
        )

    @cached_property
    def slices(self) -> tuple[Slice, ...]:
        """Return the main metric by kind, by length and by rare tokens."""
        main = self.statistics[self.main.name]
        by_kind = kind_slices(main, self.kinds)
        return (
            by_kind
            + length_slices(main, [len(text) for text in self.symbols])
            + rarity_slices(main, self.symbols, known=self.known, rare=self.rare)
        )

    @cached_property
    def reliability(self) -> Reliability | None:
        """Return the reliability of the confidence, or None without answers."""
        return reliability(*self._answers()) if self.predictions else None

    @cached_property
    def risk_coverage(self) -> RiskCoverage | None:
        """Return the error rate after rejecting answers of low confidence, or None without answers."""
        return risk_coverage(*self._answers()) if self.predictions else None

    def samples(self, number: int = 5) -> tuple[Sample, ...]:
        """Return some examples, evenly spaced.

        Args:
            number: Maximum number of examples.

        Returns:
            Examples in their order, with references and predictions.
        """
        size = len(self.predictions)
        steps = max(1, min(number, size) - 1)
        places = sorted({n * (size - 1) // steps for n in range(min(number, size))})
        return tuple(
            Sample(str(self.examples[n].source), self.references[n], self.predictions[n])
            for n in places
        )

    def _answers(self) -> tuple[np.ndarray, np.ndarray]:
        confidence = np.array([prediction.confidence for prediction in self.predictions])
        pairs = zip(self.predictions, self.references, strict=True)
        return confidence, np.array([prediction.output == text for prediction, text in pairs])
