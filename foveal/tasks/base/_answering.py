"""Answers that are either right or wrong, with confidence, n-best lists and evaluation.

examples -> candidates, by the search of a task -> predictions, their probabilities calibrated
"""

from abc import abstractmethod
from collections.abc import Container, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import NamedTuple, Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float
from typing_extensions import override

from ...attention import AttentionTrace
from ...data import Example
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics._calibration import NONE_OF_THESE, Calibration, fit_calibration
from ...metrics._metric_spec import AbstractMetricSpec
from ...metrics._statistics import Statistics
from ._answerer import AbstractAnswerer, AbstractPredicting, Answered, ignore
from ._evaluation import Baseline, Evaluation, MainMetric
from ._prediction import Candidate, Prediction, PredictionSpec
from ._size_classes import answers_of, batched
from ._task import AbstractTask, Model, at_rest


class Answers(NamedTuple):
    """The answers of a model to one example, the best first."""

    outputs: list[str]
    scores: list[float]
    log_probs: list[float]  # log-probabilities of whole answers
    token_probabilities: tuple[float, ...] = ()  # token probabilities of the first answer
    trace: AttentionTrace | None = None


@runtime_checkable
class Search(Protocol):
    """A function that answers examples of one size class in one batch."""

    def __call__(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        """Return the candidates of each example, in order."""
        ...


class AbstractAnswering(AbstractPredicting):
    """A task or an ensemble that gives every example one answer, which is either right or wrong. A subclass implements
    search and scoring; this class adds confidence, n-best lists and evaluation.
    """

    vocabularies: Vocabularies
    calibration: Calibration
    prediction: PredictionSpec  # default search settings
    is_complete: bool  # True if the candidates of an example are all possible answers
    least_rows = 2  # minimum batch size; models that are not prepared for search need more

    @property
    @abstractmethod
    def main_metric(self) -> MainMetric:
        """The score that ranks models."""

    @property
    def metrics(self) -> Sequence[AbstractMetricSpec]:
        """Metrics in addition to the metrics of the task."""
        return ()

    @abstractmethod
    def answering(self) -> AbstractContextManager[None]:
        """Disable dropout and gradients."""

    @abstractmethod
    def symbols(self, example: Example) -> list[str]:
        """Return the tokens of the source."""

    @abstractmethod
    def reference(self, example: Example) -> str:
        """Return the right answer in the format of outputs."""

    @abstractmethod
    def searcher(self) -> Search:
        """Return a search that answers examples in one batch. It is prepared once for all batches of a prediction,
        because the weights do not change.
        """

    @abstractmethod
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        """Return the metrics, the main one first."""

    @override
    def size(self, example: Example) -> int:
        return len(self.symbols(example))

    def kind(self, example: Example) -> str | None:
        """Return the kind of an example, if errors are also counted by kind."""
        return None

    @property
    def known(self) -> Container[str]:
        """The known tokens among the tokens that `symbols` returns."""
        return self.vocabularies.source

    @override
    def answerer(self, settings: PredictionSpec | None = None) -> AbstractAnswerer:
        return _Answerer(self, settings or self.prediction)

    def evaluate(
        self,
        examples: Sequence[Example],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> Evaluation:
        """Score free-running predictions against the targets of the examples."""
        groups = self._groups(examples)
        asked = [group[0] for group in groups]
        predictions = self.answerer(settings).predict(asked, answered=answered)
        if len(asked) < len(examples):
            answered(len(examples) - len(asked))
        outputs = [prediction.output for prediction in predictions]
        references = [self.reference(example) for example in asked]
        own = self._scored(groups, outputs)
        others = [metric.measure(references, outputs) for metric in self.metrics]
        return Evaluation(
            main=self.main_metric,
            statistics={one.name: one for one in (*own, *others)},
            examples=asked,
            references=references,
            predictions=predictions,
            symbols=[self.symbols(example) for example in asked],
            known=self.known,
            rare=frozenset(self.vocabularies.rare),
            kinds=[self.kind(example) for example in asked],
            trivial=partial(self._baselines, groups),
        )

    def trivial_answers(self, example: Example) -> Mapping[str, str]:
        """Return baseline answers that need no model, by rule. There are none if the training data was not counted for
        this purpose.
        """
        return {}

    def _baselines(self, groups: Sequence[Sequence[Example]]) -> list[Baseline]:
        """Return the score of each baseline rule."""
        answers = [self.trivial_answers(group[0]) for group in groups]
        found = []
        for rule in answers[0] if answers else ():
            main, *_ = self._scored(groups, [outputs[rule] for outputs in answers])
            found.append(Baseline(rule, main.value))
        return found

    def _groups(self, examples: Sequence[Example]) -> Sequence[Sequence[Example]]:
        """Group examples that share one answer; by default each example is a group."""
        return [[example] for example in examples]

    def _scored(
        self, groups: Sequence[Sequence[Example]], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        """Return the metrics of one output per group, the main one first."""
        return self.statistics_of([self.reference(group[0]) for group in groups], outputs)

    def calibrate(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> None:
        """Fit the calibration of the confidence on held-out examples."""
        settings = settings or self.prediction
        answerer, found = _Answerer(self, settings), dict[int, Answers]()
        for rows in batched([self.size(example) for example in examples], settings.batch_size):
            some = answerer.found([examples[n] for n in rows], settings)
            found.update(zip(rows, some, strict=True))
        ordered = [found[n] for n in range(len(examples))]
        references = [self.reference(example) for example in examples]
        right = np.array(
            [
                answers.outputs.index(text) if text in answers.outputs else NONE_OF_THESE
                for answers, text in zip(ordered, references, strict=True)
            ]
        )
        # A list of all known labels has no information about a label that was never seen.
        usable = (right != NONE_OF_THESE) | (not self.is_complete)
        self.calibration = fit_calibration(
            _table(ordered, settings)[usable], right[usable], complete=self.is_complete
        )


@final
class _Answerer(AbstractAnswerer):
    """The prepared search of a task."""

    def __init__(self, asked: AbstractAnswering, settings: PredictionSpec) -> None:
        super().__init__(settings)
        self._asked = asked
        with asked.answering():
            self._search = asked.searcher()

    @override
    def size(self, example: Example) -> int:
        return self._asked.size(example)

    @override
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        settings = settings or self.settings
        found = self.found(examples, settings)
        probabilities = self._asked.calibration.probabilities(_table(found, settings))
        return [
            _prediction(answers, row.tolist(), settings.nbest)
            for answers, row in zip(found, probabilities, strict=True)
        ]

    def found(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        """Return the candidates of examples of one size class."""
        search = partial(self._search, settings=settings)
        with self._asked.answering():
            return answers_of(search, examples, self._asked.least_rows)


class AbstractAnsweringTask(AbstractAnswering, AbstractTask[Model]):
    """A task in which every example has one right answer."""

    @property
    @override
    def metrics(self) -> Sequence[AbstractMetricSpec]:
        return getattr(self.spec, "metrics", ())

    @override
    def answering(self) -> AbstractContextManager[None]:
        return at_rest(self.model)


def _table(found: Sequence[Answers], settings: PredictionSpec) -> Float[np.ndarray, "N n"]:
    """Return the log-probabilities of all candidates, -inf where an example has fewer candidates: the result for one
    example must not depend on the number of candidates of another.
    """
    width = max([settings.beam_size, *(len(answers.log_probs) for answers in found)])
    table = np.full((len(found), width), -np.inf)
    for row, answers in zip(table, found, strict=True):
        row[: len(answers.log_probs)] = answers.log_probs
    return table


def _prediction(found: Answers, probabilities: Sequence[float], nbest: int) -> Prediction:
    rows = zip(found.outputs, found.scores, probabilities, strict=False)
    candidates = tuple(Candidate(*row) for row in rows)[:nbest]
    best = candidates[0]
    return Prediction(
        best.output,
        best.score,
        best.probability,
        candidates,
        found.token_probabilities,
        found.trace,
    )
