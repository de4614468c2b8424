"""Task: a model together with what its data is, what it is trained on, and how it answers.

    example -> encode -> collate -> loss                       training
    examples -> predict -> predictions                         use
    examples with targets -> evaluate -> scores, free-running  validation

A task is an object of a spec, vocabularies and a model; nothing else of it is saved.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from ...data import BatchStream, Encoded, Example, Source
from ...data.streams._prepared import PreparedCorpus
from ...data.streams._stream import AbstractStream
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics._calibration import Calibration
from ..explaining._explanation import (
    Alternative,
    ExplainedStep,
    Explanation,
    Way,
    explanation_of,
)
from ._answerer import AbstractPredicting, Answered, ignore
from ._evaluation import Evaluation, MainMetric
from ._forced import Forced
from ._prediction import Loss, Prediction, PredictionSpec
from ._task_spec import Inputs

Model = TypeVar("Model", bound=nn.Module)
OutputKind: TypeAlias = Literal["text", "label", "labels"]


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


class AbstractTask(AbstractPredicting, Generic[Model]):
    """What training, evaluation and serving know of a task."""

    vocabularies: Vocabularies
    model: Model
    prediction: PredictionSpec  # how to look for answers where nothing else is said
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

    @property
    def inputs(self) -> Inputs:
        """What an input of the task is made of."""
        return self.spec.inputs

    @property
    def output_kind(self) -> OutputKind:
        """What an output is: a text, one label, or a label for every symbol."""
        return "text"

    @property
    def has_one_answer(self) -> bool:
        """Whether an output that differs from its reference is wrong; a text may be worded in other ways."""
        return True

    @property
    def attends(self) -> bool:
        """Whether the steps of an explanation have weights of attention."""
        return False

    @property
    def can_erase(self) -> bool:
        """Whether the task can be asked without a position of its input; see `without_each`."""
        return False

    @property
    def is_bridged(self) -> bool:
        """Whether what the model reads reaches its output other than through a recurrence: by attention, or
        by a pool over all positions.
        """
        return self.attends

    @property
    def is_forcible(self) -> bool:
        """Whether an output is written symbol by symbol, so that its beginning and its attention can be
        given.
        """
        return False

    @property
    def guessing_loss(self) -> float:
        """The loss, for each symbol, of a guess that gives all outputs the same probability; 0 where nobody
        knows how many there are.
        """
        return 0.0

    def named(self, example: Example) -> str:
        """What to call the input of an example."""
        return str(example.source)

    def output_symbols(self, text: str) -> list[str]:
        """The symbols of an output."""
        return text.split()

    def explain(self, example: Example, way: Way) -> Explanation:
        """How the task came to its answer: the steps of `explained_steps` and the attention of the
        prediction.
        """
        return explanation_of(self, example, way)

    def explained_steps(
        self, example: Example, found: Prediction, alternatives: int
    ) -> Sequence[ExplainedStep]:
        """The steps that lead to an answer. By default the whole answer is one step, and the other answers
        of the n-best list are its alternatives.

        Args:
            example: the input.
            found: the prediction, with its n-best list and its trace.
            alternatives: how many alternatives to list at a step.
        """
        ranked = tuple(Alternative(one.output, one.probability) for one in found.nbest)
        return (ExplainedStep(found.output, found.confidence, ranked),)

    def forced(self, batch: Any) -> Forced:
        """What the model says of the right answers of a batch; by default their loss in one piece."""
        loss = self.loss(batch)
        return Forced(-loss.total.unsqueeze(0), int(loss.count), None)

    def without_each(self, example: Example, tokens: Sequence[str]) -> Float[Tensor, "R T"] | None:
        """The log-probability of every symbol of an answer, given the whole input and then the input
        without each of its positions; None for a task that cannot be asked this.

        Args:
            example: the input.
            tokens: the symbols of the answer, the end symbol as "".
        """
        return None

    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"] | None:
        """The picture of an example as the model sees it, channels last, the frames of a clip side by side;
        None for a task that reads texts.
        """
        return None

    def batches(
        self,
        source: Source | PreparedCorpus,
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
