"""A task that answers with ONNX Runtime instead of torch, with the same answers.

The graph is built in memory from the current weights. Settings that a graph does not have are answered by torch.
"""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from typing_extensions import override

from ..attention import AttentionTrace
from ..data import Example
from ..errors import ExportError
from ..runtime import Answer, Source
from ..runtime._engine import Engine
from ..runtime._transduction import Search, Transducer
from ..tasks import AbstractTask, Prediction, PredictionSpec, Transduction
from ..tasks.base._answerer import AbstractAnswerer
from ..tasks.base._prediction import Candidate
from ._models import task_graph
from ._refusal import refusal
from ._settings import task_settings, vocabulary_data
from ._weights import Weights

_NEAR = 1e-4  # a gap between scores that rounding can close


@final
class ExportedAnswerer(AbstractAnswerer):
    """Answers a transduction with ONNX Runtime.

    Args:
        task: Task with its current weights.
        threads: Number of threads of one run.

    Raises:
        ExportError: The task, or a part of its model, has no export.
    """

    def __init__(self, task: AbstractTask[Any], *, threads: int = 1) -> None:
        if not isinstance(task, Transduction):
            raise refusal("task", task.spec)
        super().__init__(task.prediction)
        self._task, self._original = task, task.answerer(task.prediction)
        tensors = {name: part.cpu().numpy() for name, part in task.model.state_dict().items()}
        graph = task_graph(task.spec, Weights(tensors)).model()
        engine = Engine(graph.SerializeToString(), threads)
        settings = {**task_settings(task), "max_source": np.iinfo(np.int64).max}
        self._transducer = Transducer(settings, vocabulary_data(task), engine)

    @override
    def size(self, example: Example) -> int:
        return self._task.size(example)

    @override
    def answer(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> list[Prediction]:
        settings = settings or self.settings
        if settings.no_repeat_ngram:
            return self._original.answer(examples, settings)
        search = Search(settings.beam_size, settings.length_penalty, settings.max_length)
        sources = [Source(example.text, example.features) for example in examples]
        found = self._transducer.answer(
            sources, search, settings.nbest, attention=settings.trace and self._task.attends
        )
        return [
            self._prediction(example, one) for example, one in zip(examples, found, strict=True)
        ]

    def check(self, examples: Sequence[Example]) -> None:
        """Compare the answers to examples with those of torch.

        Args:
            examples: Examples; their targets are ignored.

        Raises:
            ExportError: An answer differs by more than rounding.
        """
        ours, theirs = (each.predict(examples) for each in (self, self._original))
        for example, one, other in zip(examples, ours, theirs, strict=True):
            if one.output != other.output and abs(one.score - other.score) > _NEAR:
                raise ExportError(
                    f"the engine onnx answers {example.text[:40]!r} with {one.output!r}, expected {other.output!r}. Use "
                    f"--engine torch, and report this as a bug."
                )

    def _prediction(self, example: Example, found: Answer) -> Prediction:
        trace = None
        if found.attention is not None and self._task.attention is not None:
            trace = AttentionTrace(
                kind=self._task.attention,
                sources=found.attention.sources,
                targets=found.attention.targets,
                weights=found.attention.weights,
                layout=self._task.layout(example),
            )
        return Prediction(
            found.output,
            found.score,
            found.confidence,
            tuple(Candidate(*each) for each in found.nbest),
            found.token_probabilities,
            trace,
        )
