"""Copying with a Lie-access memory: the fraction of right outputs by length, as in `_memory.py`.

    results/lie_access.json          figures

Sequences have at most 20 letters in training, and 20, 40, 60 or 100 in the test.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from recipes import memory

from ..records._fitting import COST, Cost, folder_of
from ..results import Results, Row
from ._comparison import UNIT, mean_row, spec_of
from ._memory import LENGTHS, right, tests

NAME = "lie_access"
CASES = ("copy_lie",)


def score(cases: Sequence[str], seeds: Sequence[int], runs: Path, results: Path) -> None:
    """Write the figures of the cases, each with the seeds that were fitted."""
    rows, specs = list[Row](), dict[str, object]()
    for case in cases:
        folders = {seed: folder_of(runs, NAME, case, seed) for seed in seeds}
        folders = {seed: path for seed, path in folders.items() if (path / COST).exists()}
        if not folders:
            continue
        fitted = tuple(folders)
        for length in LENGTHS:
            examples = tests(case, length)
            values = [right(folder, examples) for folder in folders.values()]
            rows.append(mean_row(f"{case.replace('_', ', ')}: {length}", values, UNIT, fitted))
            print(rows[-1].name, values, flush=True)
        minutes = [Cost.load(folder).processor_minutes for folder in folders.values()]
        rows.append(mean_row(f"{case.replace('_', ', ')}: CPU minutes", minutes, "min", fitted))
        specs[case] = spec_of(memory.recipe(case))
    made = Results.here(f"python -m benchmarks.lectures score {NAME}")
    replace(made.with_rows(rows), spec=specs).save(results / f"{NAME}.json")
