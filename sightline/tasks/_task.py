"""Task: a model together with what its data is, what it is trained on, and how it answers.

    example -> encode -> collate -> loss                       training
    examples -> predict -> predictions                         use
    examples with targets -> evaluate -> scores, free-running  validation

A task is an object of a spec, vocabularies and a model; nothing else of it is saved.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import nn
from typing_extensions import override

from ..attention import AttentionTrace
from ..data import AbstractStream, BatchStream, Encoded, Example, Source
from ._calibration import NONE_OF_THESE, Calibration, fit_calibration
from ._evaluation import Evaluation, MainMetric
from ._prediction import Candidate, Loss, Prediction, PredictionSpec
from ._statistics import Statistics
from ._vocabularies import Vocabularies

Model = TypeVar("Model", bound=nn.Module)

# In a batch of examples that are predicted; some 20,000 words, whose states fit into the memory of
# any machine.
_MOST_CHARACTERS = 100_000


# A function that is told how many more examples have been answered.
Answered: TypeAlias = Callable[[int], None]


def ignore(number: int) -> None:
    """Tell nobody."""
    del number


class Answers(NamedTuple):
    """Answers to one example as a model gives them, the best first."""

    outputs: list[str]
    scores: list[float]
    log_probs: list[float]  # of whole answers
    token_probabilities: tuple[float, ...] = ()  # of the first
    trace: AttentionTrace | None = None


# Answers to some examples, all in one batch.
Search: TypeAlias = Callable[[Sequence[Example]], list[Answers]]


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """A model without dropout, and without gradients; afterwards it is as it was."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(was_training)


class AbstractTask(ABC, Generic[Model]):
    """What training, evaluation and serving know of a task."""

    vocabularies: Vocabularies
    model: Model
    calibration: Calibration

    @property
    @abstractmethod
    def spec(self) -> Any:
        """What the task was built from."""

    @property
    @abstractmethod
    def main_metric(self) -> MainMetric:
        """The score that tells which of two models is better."""

    @abstractmethod
    def encode(self, example: Example) -> Encoded:
        """An example to learn from, as numbers."""

    @abstractmethod
    def collate(self, examples: Sequence[Encoded]) -> Any:
        """Encoded examples as a batch of tensors."""

    @abstractmethod
    def loss(self, batch: Any, state: Any = None) -> Loss:
        """The loss of a batch; `state` is that of the loss before, where texts go on."""

    @abstractmethod
    def predict(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        """An answer to each example, in their order; the spec says how if `settings` does not."""

    @abstractmethod
    def evaluate(
        self,
        examples: Sequence[Example],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> Evaluation:
        """Scores of free-running predictions against the examples' targets; `answered` is told of
        every few that are done.
        """

    @abstractmethod
    def calibrate(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> None:
        """Fit what turns probabilities into confidence on examples that were not trained on."""

    def batches(
        self,
        source: Source,
        *,
        budget: int | None = None,
        batch_size: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> AbstractStream[Any]:
        """Batches to train on; see `BatchStream`."""
        return BatchStream(
            source,
            self.encode,
            self.collate,
            budget=budget,
            batch_size=batch_size,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def answering(self) -> AbstractContextManager[None]:
        """The model without dropout, and without gradients."""
        return at_rest(self.model)


class AbstractAnswering(ABC):
    """What gives every example one answer, of which it can be told whether it is right: a task, or
    several as one. A subclass looks for answers and scores them; confidence, n-best lists and
    evaluation follow.
    """

    vocabularies: Vocabularies
    calibration: Calibration
    prediction: PredictionSpec  # how to look for answers where nothing else is said
    is_complete: bool  # whether the candidates of an example are all there is

    @property
    @abstractmethod
    def main_metric(self) -> MainMetric:
        """The score that tells which of two models is better."""

    @abstractmethod
    def answering(self) -> AbstractContextManager[None]:
        """Whatever answers without dropout, and without gradients."""

    @abstractmethod
    def symbols(self, example: Example) -> list[str]:
        """The symbols of the source."""

    @abstractmethod
    def reference(self, example: Example) -> str:
        """The right answer, written as outputs are."""

    @abstractmethod
    def _searcher(self, settings: PredictionSpec) -> Search:
        """What answers some examples, all in one batch. It is made ready once for all batches of a
        prediction, for weights do not change within it.
        """

    @abstractmethod
    def _statistics(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        """The metrics, the main one first."""

    def predict(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        """An answer to each example, in their order. What is in one batch with an example does not
        change its answer.
        """
        return self._predict(examples, settings or self.prediction, ignore)

    def _predict(
        self, examples: Sequence[Example], settings: PredictionSpec, answered: Answered
    ) -> list[Prediction]:
        found = self._found(examples, settings, answered)
        probabilities = self.calibration.probabilities(_table(found)) if found else ()
        return [
            _prediction(answers, row.tolist(), settings.nbest)
            for answers, row in zip(found, probabilities, strict=True)
        ]

    def evaluate(
        self,
        examples: Sequence[Example],
        settings: PredictionSpec | None = None,
        *,
        answered: Answered = ignore,
    ) -> Evaluation:
        """Scores of free-running predictions against the examples' targets."""
        references = [self.reference(example) for example in examples]
        predictions = self._predict(examples, settings or self.prediction, answered)
        outputs = [prediction.output for prediction in predictions]
        statistics = self._statistics(references, outputs)
        return Evaluation(
            main=self.main_metric,
            statistics={one.name: one for one in statistics},
            examples=examples,
            references=references,
            predictions=predictions,
            symbols=[self.symbols(example) for example in examples],
            known=self.vocabularies.source,
            rare=frozenset(self.vocabularies.rare),
        )

    def calibrate(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> None:
        """Fit what turns probabilities into confidence on examples that were not trained on."""
        found = self._found(examples, settings or self.prediction, ignore)
        references = [self.reference(example) for example in examples]
        right = np.array(
            [
                answers.outputs.index(text) if text in answers.outputs else NONE_OF_THESE
                for answers, text in zip(found, references, strict=True)
            ]
        )
        # Of a label that was never seen, a list of all labels that were has nothing to say.
        usable = (right != NONE_OF_THESE) | (not self.is_complete)
        self.calibration = fit_calibration(
            _table(found)[usable], right[usable], complete=self.is_complete
        )

    def _found(
        self, examples: Sequence[Example], settings: PredictionSpec, answered: Answered
    ) -> list[Answers]:
        """Answers to all examples, looked for in batches of about one length."""
        order = sorted(range(len(examples)), key=lambda n: -len(examples[n].source))
        answers: dict[int, Answers] = {}
        with self.answering():
            search = self._searcher(settings)
            while len(answers) < len(order):
                rest = order[len(answers) :]
                size = _MOST_CHARACTERS // max(1, len(examples[rest[0]].source))
                rows = rest[: max(1, min(settings.batch_size, size))]
                found = search([examples[n] for n in rows])
                answers.update(zip(rows, found, strict=True))
                answered(len(rows))
        return [answers[n] for n in range(len(examples))]


class AbstractAnsweringTask(AbstractAnswering, AbstractTask[Model]):
    """A task whose every example has one right answer."""

    @override
    def answering(self) -> AbstractContextManager[None]:
        return at_rest(self.model)


def _table(found: Sequence[Answers]) -> np.ndarray:
    """Log-probabilities of all candidates, -inf where an example has fewer."""
    table = np.full((len(found), max(len(answers.log_probs) for answers in found)), -np.inf)
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
