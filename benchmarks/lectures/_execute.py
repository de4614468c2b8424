"""Learning to execute: right outputs by length and nesting, for curricula and models.

    results/execute.json

For each case: the percentage of test programs whose whole output is right, mean over seeds with the lowest and the highest,
for all programs and for each length and nesting; and the kinds of the errors on the longest programs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.tasks import Transduction
from recipes import execute

from ..records._fitting import COST, Cost, folder_of
from ..results import Results, Row
from ._comparison import UNIT, mean_row, spec_of

NAME = "execute"
NUM_TESTED = 300  # programs of each length and nesting
ERRORS = ("one digit", "first digits right", "number of digits", "other")


class Scored(NamedTuple):
    """The results of one model: the percentage of right outputs of each stage, and its errors on the last one."""

    right: Sequence[float]
    errors: Counter[str]
    minutes: float


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write results/execute.json for the cases that were fitted with all seeds."""
    rows, specs = list[Row](), dict[str, object]()
    for case in cases:
        folders = [folder_of(runs, NAME, case, seed) for seed in seeds]
        if not all((folder / COST).exists() for folder in folders):
            continue
        scored = [_scored(case, folder) for folder in folders]
        rows += _rows(case, scored, seeds)
        specs[case] = spec_of(execute.recipe(case))
        print(case, [round(mean(each.right), 1) for each in scored], flush=True)
    made = Results.here(f"python -m benchmarks.lectures score {NAME}")
    replace(made.with_rows(rows), spec=specs).save(results / f"{NAME}.json")


def _scored(case: str, folder: Path) -> Scored:
    task = load_bundle(folder)
    assert isinstance(task, Transduction)
    right, errors = list[float](), Counter[str]()
    for length, nesting in execute.STAGES:
        examples = list[Example](
            execute.Programs(
                length=length,
                nesting=nesting,
                part="test",
                size=NUM_TESTED,
                is_scrambled=case.startswith("scrambled"),
            )
        )
        outputs = [answer.output for answer in task.predict(examples)]
        pairs = [
            (example.target or "", output)
            for example, output in zip(examples, outputs, strict=True)
        ]
        right.append(100 * mean(expected == output for expected, output in pairs))
        errors = Counter(kind_of_error(*pair) for pair in pairs if pair[0] != pair[1])
    return Scored(right, errors, Cost.load(folder).processor_minutes)


def kind_of_error(expected: str, output: str) -> str:
    """Return how a wrong output differs: in one digit, after correct first digits, or in its length."""
    if len(expected) != len(output):
        return "number of digits"
    differences = [a != b for a, b in zip(expected, output, strict=True)]
    if sum(differences) == 1:
        return "one digit"
    return "first digits right" if not any(differences[: len(differences) // 2]) else "other"


def _rows(case: str, scored: Sequence[Scored], seeds: Sequence[int]) -> Iterator[Row]:
    name = case.replace("_", ", ")
    yield mean_row(f"{name}: all", [mean(each.right) for each in scored], UNIT, seeds)
    for number, (length, nesting) in enumerate(execute.STAGES):
        values = [each.right[number] for each in scored]
        yield mean_row(f"{name}: length {length}, nesting {nesting}", values, UNIT, seeds)
    total = max(1, sum(sum(each.errors.values()) for each in scored))
    for kind in ERRORS:
        value = 100 * sum(each.errors[kind] for each in scored) / total
        yield Row(name=f"{name}: errors, {kind}", value=value, unit=UNIT, seeds=tuple(seeds))
    yield mean_row(f"{name}: CPU minutes", [each.minutes for each in scored], "min", seeds)
