"""A task that answers with ONNX Runtime instead of torch, with the same answers.

The graph is built in memory from the current weights. Settings that a graph does not have, and long sources, are
answered by torch. Which engine answers an example never depends on the other examples, so its answer is bit-identical in
every batch.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, final

from typing_extensions import override

from ..attention import AttentionTrace, Layout
from ..data import Example
from ..errors import ExportError, FovealError
from ..runtime import Answer, ExportedModelError, Source
from ..runtime._engine import Engine
from ..runtime._model import TASKS
from ..runtime._task import Search, Task
from ..tasks import AbstractTask, Prediction, PredictionSpec, Transduction
from ..tasks.base._answerer import AbstractAnswerer
from ..tasks.base._prediction import Candidate
from ._agreement import disagreement
from ._models import task_graph
from ._settings import task_settings, vocabulary_data
from .graphs._refusal import refusal
from .graphs._weights import Weights

# A run of a graph cannot be interrupted, and a server interrupts long batches for short requests. Therefore, torch answers
# sources that are padded to more.
LONGEST = 512
# Positions times hypotheses in a run: more are slower for each example, because they leave the cache of the processor.
_AT_ONCE = 4096
_ONE_IN = 4  # examples are also answered alone in a check
_SHOWN = 40  # characters of a source in an error


class Asked(NamedTuple):
    """An example in the form that the runtime of its task answers, and the layout of its positions."""

    prepared: Any
    layout: Layout


@singledispatch
def asked(task: AbstractTask[Any], exported: Task, example: Example, search: Search) -> Asked:
    """Prepare an example for the runtime; register a function for a task whose inputs are not texts.

    Args:
        task: Task of the example.
        exported: Runtime of the task.
        example: Example to answer.
        search: Settings of the search.

    Returns:
        The prepared example.
    """
    del task
    return Asked(exported.prepared(Source(example.text), search), Layout())


@asked.register
def _(task: Transduction, exported: Task, example: Example, search: Search) -> Asked:
    source = Source(task.spec.form.text(example), example.features)
    return Asked(exported.prepared(source, search), Layout())


@final
class ExportedAnswerer(AbstractAnswerer):
    """Answers the examples of a task with ONNX Runtime, on one thread.

    Args:
        task: Task with its current weights.

    Raises:
        ExportError: The task, or a part of its model, has no export.

    Examples:
        >>> task = foveal.load("runs/hin")                            # doctest: +SKIP
        >>> ExportedAnswerer(task).predict(["delhi"])[0].output       # doctest: +SKIP
        'd e l i'
    """

    def __init__(self, task: AbstractTask[Any]) -> None:
        super().__init__(task.prediction)
        self._task = task
        settings = {**task_settings(task), "max_source": sys.maxsize}
        if settings["task"] not in TASKS:
            raise refusal("task", task.spec)
        self._attention: str | None = settings["attention"]
        tensors = {name: part.cpu().numpy() for name, part in task.model.state_dict().items()}
        graph = task_graph(task.spec, Weights(tensors)).model()
        with _refused():
            engine = Engine(graph.SerializeToString())
            self._exported = TASKS[settings["task"]](settings, vocabulary_data(task), engine)

    @cached_property
    def original(self) -> AbstractAnswerer:
        """The answerer with torch."""
        return self._task.answerer(self.settings)

    @override
    def size(self, example: Example) -> int:
        return self._task.size(example)

    @override
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        settings = settings or self.settings
        if settings.no_repeat_ngram or settings.inventory:
            return self.original.answer(examples, settings)
        search = Search(
            settings.beam_size, settings.length_penalty, settings.max_length, settings.nbest
        )
        with _refused():
            given = [asked(self._task, self._exported, example, search) for example in examples]
        groups = dict[tuple[int, ...], list[int]]()
        for row, one in enumerate(given):
            groups.setdefault(self._exported.shape(one.prepared), []).append(row)
        found = dict[int, Prediction]()
        for shape, rows in groups.items():
            if math.prod(shape) > LONGEST:
                answers = self.original.answer([examples[row] for row in rows], settings)
            else:
                answers = self._answers([given[row] for row in rows], shape, search, settings.trace)
            found.update(zip(rows, answers, strict=True))
        return [found[row] for row in range(len(examples))]

    def _answers(
        self, given: Sequence[Asked], shape: Sequence[int], search: Search, is_tracing: bool
    ) -> list[Prediction]:
        """Answer examples of one padded shape, in as many runs of the graph as needed."""
        found = list[Prediction]()
        most = max(1, _AT_ONCE // (math.prod(shape) * search.beam_size))
        for start in range(0, len(given), most):
            some = given[start : start + most]
            with _refused():
                answers = self._exported.answer(
                    [one.prepared for one in some], search, attention=is_tracing
                )
            found += [
                self._prediction(answer, one.layout)
                for answer, one in zip(answers, some, strict=True)
            ]
        return found

    def check(self, examples: Sequence[Example]) -> None:
        """Compare the answers to examples with those of torch, and those of single examples with those of a batch.

        Args:
            examples: Examples; their targets are ignored.

        Raises:
            ExportError: An answer differs by more than rounding, or depends on its batch, or there is none.
        """
        try:
            self._check(examples)
        except ExportError:
            raise
        except FovealError as error:
            raise ExportError(f"an example of the run has no answer. {error}") from error

    def _check(self, examples: Sequence[Example]) -> None:
        nbest = self.settings.beam_size
        settings = replace(self.settings, nbest=nbest, trace=self._task.attends)
        together = self.predict(examples, settings)
        expected = self.original.predict(examples, settings)
        for example, ours, theirs in zip(examples, together, expected, strict=True):
            different = disagreement(ours, theirs)
            if different is not None:
                raise _differs(example, different)
        for number in range(0, len(examples), _ONE_IN):
            (alone,) = self.predict([examples[number]], settings)
            if alone != together[number]:
                raise _differs(examples[number], "the answer depends on the rest of the batch")

    def _prediction(self, found: Answer, layout: Layout) -> Prediction:
        trace, read = None, found.attention
        if read is not None and self._attention is not None:
            trace = AttentionTrace(kind=self._attention, layout=layout, **vars(read))
        return Prediction(
            found.output,
            found.score,
            found.confidence,
            tuple(Candidate(*each) for each in found.nbest),
            found.token_probabilities,
            trace,
        )


@contextmanager
def _refused() -> Iterator[None]:
    """Raise errors of the runtime as errors of this library."""
    try:
        yield
    except ExportedModelError as error:
        raise ExportError(f"ONNX Runtime cannot run the model. {error}") from error


def _differs(example: Example, how: str) -> ExportError:
    return ExportError(
        f"ONNX Runtime and torch answer an example differently. For {str(example.source)[:_SHOWN]!r}, {how}. Use the "
        f"engine torch, and report this as a bug, with the spec of the model."
    )
