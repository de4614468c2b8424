"""Does an export answer as the original does, alone and in a batch?

An answer that differs is explained by rounding if the original scores both outputs within 1e-4.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from foveal.runtime import Answer
from foveal.tasks import Prediction

from ..results import Row
from ._models import SEED, Case

_NEAR = 1e-4
_BATCH_SIZE = 32


def rows(case: Case) -> Iterator[Row]:
    """Compare the answers to all test examples."""
    model = case.exported()
    ours, theirs = case.answers(model, _BATCH_SIZE), case.predictions()
    is_same = [a.output == b.output for a, b in zip(ours, theirs, strict=True)]
    unexplained = [
        (a, b)
        for a, b in zip(ours, theirs, strict=True)
        if a.output != b.output and abs(a.score - b.score) > _NEAR
    ]
    same = [(a, b) for a, b, equal in zip(ours, theirs, is_same, strict=True) if equal]
    alone = case.answers(model, 1)
    yield _row(case, "examples", len(ours), "inputs")
    equal = replace(
        _row(case, "same output as torch", 100 * float(np.mean(is_same)), "%"),
        target=99.95,
        sense=">=",
    )
    yield equal
    yield _most(
        case, "outputs whose scores differ by more than 1e-4", len(unexplained), 0, "inputs"
    )
    scores = max(abs(a.score - b.score) for a, b in same)
    yield _most(case, "largest difference of scores", scores, _NEAR)
    confidence = max(abs(a.confidence - b.confidence) for a, b in same)
    yield _most(case, "largest difference of confidence", confidence, _NEAR)
    if case.task.attends:
        weights = max(_distance(a, b) for a, b in same)
        yield _most(case, "largest difference of attention weights", weights, _NEAR)
    company = max(abs(a.score - b.score) for a, b in zip(alone, ours, strict=True))
    yield _most(case, "largest difference of scores alone and in batches of 32", company, 1e-6)


def _distance(ours: Answer, theirs: Prediction) -> float:
    """Return the largest difference of attention weights."""
    assert ours.attention is not None
    assert theirs.trace is not None
    first, second = (np.array(each.weights) for each in (ours.attention, theirs.trace))
    return float(np.abs(first - second).max(initial=0.0))


def _most(case: Case, name: str, value: float, target: float, unit: str = "") -> Row:
    return replace(_row(case, name, value, unit), target=target, sense="<=")


def _row(case: Case, name: str, value: float, unit: str) -> Row:
    return Row(name=f"{case.name}: {name}", value=value, unit=unit, seeds=(SEED,))
