"""`selftest.jsonl`: inputs with their answers, for every runtime to compare with its own.

Weights that are stored in fewer bits can change an answer, so the file then contains the answers of the export.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any, NamedTuple

from ..data import Example
from ..runtime import Model, Source
from ..tasks import AbstractTask
from ..tasks.base._answering import AbstractAnswering

MOST_LINES = 200
_DIGITS = 6  # of scores and weights
_NEAR = 1e-4  # a gap between scores that rounding can close


class Answered(NamedTuple):
    """One example and its answers, best first."""

    text: str
    features: str | None
    tokens: tuple[int, ...]  # ids that the graph reads
    outputs: tuple[str, ...]
    scores: tuple[float, ...]
    confidence: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...] | None  # of the best output: a row for each token

    def to_json(self) -> str:
        """Return a line of JSON."""
        data = self._asdict()
        for name in ("scores", "confidence"):
            data[name] = [round(each, _DIGITS) for each in data[name]]
        if self.weights is not None:
            data["weights"] = [[round(each, _DIGITS) for each in row] for row in self.weights]
        return json.dumps(data, ensure_ascii=False)


@singledispatch
def portable(task: AbstractTask[Any], example: Example) -> Example:
    """Return an example whose text is the whole input; register a function for a task whose inputs are in files.

    Args:
        task: Task to export.
        example: An example of the task.

    Returns:
        An example that has the same answer on another machine.
    """
    del task
    return example


def answers_of_task(
    task: AbstractTask[Any], model: Model, examples: Sequence[Example]
) -> list[Answered]:
    """Answer examples with the original model.

    Args:
        task: Task to export.
        model: The loaded export, which numbers the tokens.
        examples: Examples; their targets are ignored.

    Returns:
        The answers.
    """
    assert isinstance(task, AbstractAnswering)
    settings = replace(task.prediction, nbest=task.prediction.beam_size, trace=task.attends)
    return [
        Answered(
            example.text,
            example.features or None,
            tuple(model.encoded(Source(example.text, example.features))),
            tuple(each.output for each in found.nbest),
            tuple(each.score for each in found.nbest),
            tuple(each.probability for each in found.nbest),
            None if found.trace is None else found.trace.weights,
        )
        for example, found in zip(examples, task.predict(examples, settings), strict=True)
    ]


def answers_of_export(model: Model, examples: Sequence[Example]) -> list[Answered]:
    """Answer examples with an exported model.

    Args:
        model: The loaded export.
        examples: Examples; their targets are ignored.

    Returns:
        The answers.
    """
    sources = [Source(example.text, example.features) for example in examples]
    nbest = model.settings["prediction"]["beam_size"]
    return [
        Answered(
            source.text,
            source.features or None,
            tuple(model.encoded(source)),
            tuple(each.output for each in found.nbest),
            tuple(each.score for each in found.nbest),
            tuple(each.confidence for each in found.nbest),
            None if found.attention is None else found.attention.weights,
        )
        for source, found in zip(
            sources, model.predict(sources, nbest=nbest, attention=True), strict=True
        )
    ]


def num_equal(first: Sequence[Answered], second: Sequence[Answered]) -> int:
    """Return how many examples have the same best output in both."""
    return sum(a.outputs[0] == b.outputs[0] for a, b in zip(first, second, strict=True))


def difference(first: Sequence[Answered], second: Sequence[Answered]) -> str | None:
    """Return the first difference between two lists of answers that rounding does not explain; None if there is none.

    Rounding explains different orders of candidates whose scores differ by at most 1e-4.
    """
    for ours, theirs in zip(first, second, strict=True):
        if ours.outputs[0] == theirs.outputs[0]:
            continue
        scores = dict(zip(ours.outputs, ours.scores, strict=True))
        gap = ours.scores[0] - scores.get(theirs.outputs[0], -math.inf)
        if gap > _NEAR:
            return f"the answer to {ours.text!r} is {theirs.outputs[0]!r}, expected {ours.outputs[0]!r}"
    return None
