"""Task: a model together with what its data is, what it is trained on, and how it answers.

    example -> encode -> collate -> loss                       training
    examples -> predict -> predictions                         use
    examples with targets -> evaluate -> scores, free-running  validation

A task is an object of a spec, vocabularies and a model; nothing else of it is saved.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from ...data import BatchStream, Encoded, Example, Source
from ...data.streams._prepared import PreparedCorpus
from ...data.streams._stream import AbstractStream
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics._calibration import Calibration
from ._answerer import AbstractPredicting, Answered, ignore
from ._evaluation import Evaluation, MainMetric
from ._prediction import Loss, PredictionSpec

Model = TypeVar("Model", bound=nn.Module)


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
