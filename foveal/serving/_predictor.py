"""The predictor: examples in, predictions out. The command line, bulk jobs and the server share it.

It computes with one thread: two threads add numbers in another order, and for models this small the
synchronization costs more than the second thread gains. To use more cores, run more processes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, final

import torch

from ..data import Example
from ..specs import check
from ..tasks import (
    AbstractTask,
    Prediction,
    PredictionSpec,
    TaskSpec,
    TransductionEnsemble,
)
from ..tasks.base._answerer import AbstractAnswerer


class Questions:
    """The inputs and settings that a task accepts, known without computing.

    Args:
        task: The task that answers.
        spec: The spec of the task, or of the first of several.
    """

    def __init__(self, task: AbstractTask[Any] | TransductionEnsemble, spec: TaskSpec) -> None:
        self.task, self.spec = task, spec

    @property
    def has_features(self) -> bool:
        """True if the task reads a features column next to the source."""
        return self.spec.inputs.features

    @property
    def is_pair(self) -> bool:
        """True if the task reads two columns: texts, or an image and a question."""
        inputs = self.spec.inputs
        return inputs.second or (inputs.text and inputs.picture)

    def settings(
        self,
        *,
        nbest: int = 1,
        beam_size: int | None = None,
        no_repeat_ngram: int | None = None,
        inventory: tuple[str, ...] | None = None,
        attention: bool = False,
    ) -> PredictionSpec:
        """Return the search settings for this many answers; the others default to the spec's."""
        usual = self.task.prediction
        return _settings(usual, nbest, beam_size, no_repeat_ngram, inventory, attention)

    def example(self, line: str) -> Example:
        """Convert the columns of a line to an example: the first column, and the features or the second text of a
        pair from the second column, if the task reads them. Further columns are ignored.
        """
        columns = line.split("\t", 2)
        if self.is_pair:
            return Example("\t".join(columns[:2]))
        return Example(columns[0], features="".join(columns[1:2]) if self.has_features else "")

    def size(self, example: Example) -> int:
        """Return the number of input tokens of an example."""
        return self.task.size(example)


@final
class Predictor(Questions):
    """A task with its current weights, ready for any search settings.

    Args:
        task: Trained task, or an ensemble.
        spec: Spec of the task, or of the first member.
        answerer: An engine for the answers, for example `foveal.export.ExportedAnswerer`; None for torch.
    """

    def __init__(
        self,
        task: AbstractTask[Any] | TransductionEnsemble,
        spec: TaskSpec,
        answerer: AbstractAnswerer | None = None,
    ) -> None:
        super().__init__(task, spec)
        self._answerer = task.answerer() if answerer is None else answerer

    def answer(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Prediction]:
        """Predict examples of one size class, in one batch.

        Args:
            examples: Examples of one size class.
            settings: Search settings.

        Returns:
            One prediction per example, in order.
        """
        with _one_thread():
            return self._answerer.answer(examples, settings)

    def predict(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Prediction]:
        """Predict any examples, and keep their order.

        Args:
            examples: Examples of any sizes.
            settings: Search settings.

        Returns:
            One prediction per example, in order.
        """
        with _one_thread():
            return self._answerer.predict(examples, settings)


@lru_cache(
    maxsize=256
)  # a server sees few different settings, and would otherwise validate them for every request
def _settings(
    usual: PredictionSpec,
    nbest: int,
    beam_size: int | None,
    no_repeat_ngram: int | None,
    inventory: tuple[str, ...] | None,
    attention: bool,
) -> PredictionSpec:
    beam_size = max(nbest, usual.beam_size) if beam_size is None else beam_size
    size = usual.no_repeat_ngram if no_repeat_ngram is None else no_repeat_ngram
    settings = replace(
        usual,
        nbest=nbest,
        beam_size=beam_size,
        no_repeat_ngram=size,
        inventory=usual.inventory if inventory is None else inventory,
        trace=attention,
    )
    check(settings)
    return settings


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
