"""Shared parts of tasks that predict one label: labels, loss, ranking, metrics.

    loss = - log p(label | text)  (smoothed)

Axes: B examples, C classes.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import nll_loss
from typing_extensions import override

from ...attention import AttentionTrace
from ...batch_invariant import LEAST_ROWS
from ...data import Example
from ...data.vocabularies._vocabularies import Vocabularies, located, required_target
from ...data.vocabularies._vocabulary import Labels
from ...metrics._calibration import Calibration, Scaling
from ...metrics._metrics import accuracy, f1
from ...metrics._statistics import Statistics
from ..explaining._explanation import Alternative, ExplainedStep, Explanation, Way
from ._answering import AbstractAnsweringTask, Answers, Search
from ._evaluation import MainMetric
from ._prediction import Loss, Prediction, PredictionSpec
from ._size_classes import by_class, size_class
from ._task import OutputKind

Model = TypeVar("Model", bound=nn.Module)

# Returns the trace of an example of a batch, given its index and the predicted label.
Tracing: TypeAlias = Callable[[int, str], AttentionTrace | None]


class Labeled(NamedTuple):
    """The label probabilities of some examples and their traces."""

    log_probs: Float[Tensor, "B C"]
    trace: Tracing


@runtime_checkable
class LabelingSpec(Protocol):
    """Shared fields of the specs of tasks that predict one label."""

    @property
    def kind(self) -> str:
        """The name of the task."""
        ...

    @property
    def prediction(self) -> PredictionSpec:
        """Default settings of prediction."""
        ...


Spec = TypeVar("Spec", bound=LabelingSpec)


class AbstractLabeling(AbstractAnsweringTask[Model], Generic[Model, Spec]):
    """A task with one label per example."""

    is_complete = True
    least_rows = LEAST_ROWS

    def __init__(self, spec: Spec, vocabularies: Vocabularies, model: Model) -> None:
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self._labels: Labels = vocabularies.labels_of(type(self).__name__)
        self.prediction = spec.prediction
        self.calibration = Calibration((Scaling(others=None),))

    @property
    @override
    def spec(self) -> Spec:
        return self._spec

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("accuracy", True)

    @property
    @override
    def output_kind(self) -> OutputKind:
        return "label"

    @property
    @override
    def guessing_loss(self) -> float:
        return math.log(len(self._labels.names))

    @override
    def output_symbols(self, text: str) -> list[str]:
        return [text]

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain the probabilities of all labels and the attention."""
        found, explanation = self._explained(example)
        return replace(explanation, others=() if found.trace is None else (found.trace,))

    def _explained(self, example: Example) -> tuple[Prediction, Explanation]:
        """Return the prediction with its trace, and all labels as one step."""
        size = len(self._labels)
        settings = replace(self.prediction, nbest=size, beam_size=size, trace=True)
        (found,) = self.predict([example], settings)
        ranked = tuple(Alternative(each.output, math.exp(each.score)) for each in found.nbest)
        explanation = Explanation(
            task=self.spec.kind,
            input=self.named(example),
            output=found.output,
            score=found.score,
            confidence=found.confidence,
            nbest=found.nbest,
            sources=tuple(self.symbols(example) or [""]),
            steps=(ExplainedStep(found.output, ranked[0].probability, ranked),),
            picture=self.picture_seen(example),
        )
        return found, explanation

    def _numbers_of(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of labels."""
        return [self._labels.number(token) for token in tokens]

    @abstractmethod
    def _shape(self, example: Example) -> tuple[int, ...]:
        """Return the size of an example along each axis."""

    @abstractmethod
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        """Predict labels for examples of one size class in one batch."""

    def _label(self, example: Example) -> int:
        """Return the id of the right label."""
        with located(example):
            return self._labels.number(self.reference(example))

    def _loss(
        self, log_probs: Float[Tensor, "B C"], labels: Int[Tensor, " B"], smoothing: float = 0.0
    ) -> Loss:
        """Compute the loss, summed over examples; `smoothing` is spread evenly over all labels."""
        total = nll_loss(log_probs, labels, reduction="sum")
        if smoothing:
            spread = -log_probs.mean(-1).sum()
            total = total + smoothing * (spread - total)
        return Loss(total, torch.tensor(len(labels), device=self.device))

    @override
    def reference(self, example: Example) -> str:
        return label_of(example)

    @override
    def trivial_answers(self, example: Example) -> Mapping[str, str]:
        label = self.vocabularies.majority.get("")
        return {} if label is None else {"the most frequent label": label}

    @override
    def searcher(self) -> Search:
        return self._search

    def _search(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        ask = partial(self._ranked, is_tracing=settings.trace)
        return by_class(ask, examples, self._class, self.least_rows)

    def _class(self, example: Example) -> tuple[int, ...]:
        """Return the size class, which all examples of a batch share."""
        return tuple(map(size_class, self._shape(example)))

    def _ranked(self, examples: Sequence[Example], is_tracing: bool) -> list[Answers]:
        """Rank all labels by probability."""
        labeled = self._labeled(examples)
        ranked = labeled.log_probs.sort(-1, descending=True)
        found = []
        for number, (log_probs, labels) in enumerate(
            zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True)
        ):
            names = [self._labels.names[label] for label in labels]
            trace = labeled.trace(number, names[0]) if is_tracing else None
            found.append(Answers(names, log_probs, log_probs, trace=trace))
        return found

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        rows = [[text] for text in references], [[text] for text in outputs]
        return accuracy(*rows), f1(*rows)


def label_of(example: Example) -> str:
    """Return the label of a training example."""
    return required_target(example).strip()


def no_trace(_number: int, _label: str) -> Any:
    """Return no trace, for models without attention."""
    return None
