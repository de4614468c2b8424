"""The predictor: examples in, predictions out. The command line, bulk jobs and the server ask the same one.

It computes with one thread: the sums of two come in another order, and for models this small threads that
wait for each other cost more than they give. More cores are used by more processes.
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


class Questions:
    """What may be asked of a task, which is known without computing.

    Args:
        task: what answers.
        spec: of the task, or of the first of several.
    """

    def __init__(self, task: AbstractTask[Any] | TransductionEnsemble, spec: TaskSpec) -> None:
        self.task, self.spec = task, spec

    @property
    def has_features(self) -> bool:
        """Whether a features column is read beside the source."""
        return self.spec.inputs.features

    @property
    def is_pair(self) -> bool:
        """Whether two columns are read: texts, or an image and a question."""
        inputs = self.spec.inputs
        return inputs.second or (inputs.text and inputs.picture)

    def settings(
        self, *, nbest: int = 1, beam_size: int | None = None, attention: bool = False
    ) -> PredictionSpec:
        """How to look for so many answers; the beam_size is that of the spec where it is not given."""
        return _settings(self.task.prediction, nbest, beam_size, attention)

    def example(self, line: str) -> Example:
        """What a line asks: its first column, and of the second the features or the other text of a
        pair, where such are read. Further columns are left alone.
        """
        columns = line.split("\t", 2)
        if self.is_pair:
            return Example("\t".join(columns[:2]))
        return Example(columns[0], features="".join(columns[1:2]) if self.has_features else "")

    def size(self, example: Example) -> int:
        """How many symbols are read of an example."""
        return self.task.size(example)


@final
class Predictor(Questions):
    """A task made ready to be asked in any way, from its weights as they are now."""

    def __init__(self, task: AbstractTask[Any] | TransductionEnsemble, spec: TaskSpec) -> None:
        super().__init__(task, spec)
        self._answerer = task.answerer(task.prediction)

    def answer(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Prediction]:
        """Answers to some examples of one size class, in one batch."""
        with _one_thread():
            return self._answerer.answer(examples, settings)

    def predict(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Prediction]:
        """Answers to any examples, in their order."""
        with _one_thread():
            return self._answerer.predict(examples, settings)


@lru_cache(maxsize=256)  # a server asks in few ways, and every request would check its own anew
def _settings(
    usual: PredictionSpec, nbest: int, beam_size: int | None, attention: bool
) -> PredictionSpec:
    beam_size = max(nbest, usual.beam_size) if beam_size is None else beam_size
    settings = replace(usual, nbest=nbest, beam_size=beam_size, trace=attention)
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
