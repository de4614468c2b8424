"""What do 16 and 8 bits cost, and what do they save?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from foveal.export._storage import Storage
from foveal.metrics import reliability
from foveal.runtime import Answer
from foveal.tasks.base._answering import AbstractAnswering

from ..results import Results, Row
from ._models import SEED, Case

MOST = {"half": 0.55, "int8": 0.30}  # of the size in float32
STORAGES: tuple[Storage, ...] = ("half", "int8")
_ENOUGH = 1_000  # examples, for a score
# The calibration error that is asked of a model, and how much storage may add. A stored model cannot be better calibrated
# than its original, so the original has the target of every model, and the stored one a target relative to it.
CALIBRATED, MOST_ADDED = 0.05, 0.01


def rows(case: Case) -> Iterator[Row]:
    """Compare every storage with float32."""
    assert isinstance(case.task, AbstractAnswering)
    whole, size = case.answers(case.exported()), _size(case, "float32")
    yield _row(case, "float32", "size of the graph", size / 1e6, "MB")
    yield _row(case, "float32", _name(case), _score(case, whole), "%")
    before = _calibration_error(case, whole)
    yield _most(case, "float32", "calibration error", before, CALIBRATED)
    for storage in STORAGES:
        found = case.answers(case.exported(storage))
        ratio = _size(case, storage) / size
        yield _most(case, storage, "size over float32", ratio, MOST[storage])
        same = [a.output == b.output for a, b in zip(found, whole, strict=True)]
        yield _row(case, storage, "same output as float32", 100 * float(np.mean(same)), "%")
        sign = 1 if case.task.main_metric.higher_is_better else -1
        loss = sign * (_score(case, whole) - _score(case, found)) + 0.0  # not -0.0
        name = f"{_name(case)}, points worse"
        yield (
            _most(case, storage, name, loss, 0.3)
            if len(found) >= _ENOUGH
            else _row(case, storage, name, loss, "")
        )
        error = _calibration_error(case, found)
        yield _most(case, storage, "calibration error", error, before + MOST_ADDED)
        alone = case.answers(case.exported(storage), 1)
        changed = sum(a != b for a, b in zip(found, alone, strict=True))
        yield _most(case, storage, "answers that differ in a batch", changed, 0, "inputs")


def retargeted(results: Results) -> Results:
    """Return the results with today's targets of calibration errors; measured figures do not change."""
    end = "calibration error"
    rows = {row.name: row for row in results.rows if row.name.endswith(f": {end}")}
    changed = list[Row]()
    for name, row in rows.items():
        model, _, storage = name.partition(":")[0].partition(", ")
        added = rows[f"{model}, float32: {end}"].value + MOST_ADDED
        target = CALIBRATED if storage == "float32" else added
        changed.append(replace(row, target=target, sense="<="))
    return results.with_rows(changed)


def _size(case: Case, storage: Storage) -> int:
    return (case.export(storage) / "model.onnx").stat().st_size


def _name(case: Case) -> str:
    assert isinstance(case.task, AbstractAnswering)
    return case.task.main_metric.name


def _score(case: Case, answers: Sequence[Answer]) -> float:
    assert isinstance(case.task, AbstractAnswering)
    references = [case.task.reference(example) for example in case.examples]
    outputs = [answer.output for answer in answers]
    return case.task.statistics_of(references, outputs)[0].value


def _calibration_error(case: Case, answers: Sequence[Answer]) -> float:
    assert isinstance(case.task, AbstractAnswering)
    right = [
        answer.output == case.task.reference(example)
        for answer, example in zip(answers, case.examples, strict=True)
    ]
    confidence = np.array([answer.confidence for answer in answers])
    return reliability(confidence, np.array(right)).ece


def _most(
    case: Case, storage: Storage, name: str, value: float, target: float, unit: str = ""
) -> Row:
    return replace(_row(case, storage, name, value, unit), target=target, sense="<=")


def _row(case: Case, storage: Storage, name: str, value: float, unit: str) -> Row:
    return Row(name=f"{case.name}, {storage}: {name}", value=value, unit=unit, seeds=(SEED,))
