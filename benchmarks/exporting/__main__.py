"""Compare exports with the models that they were made from.

    python -m benchmarks.exporting fit --runs runs                    train the models, an hour on one core
    python -m benchmarks.exporting answers storage --runs runs        every model, all test examples
    python -m benchmarks.exporting runtimes --runs runs               their self-tests in Node, Chromium and C
    python -m benchmarks.exporting start speed --runs runs            one model, when nothing else runs
    python -m benchmarks.exporting answers --runs runs --cases ice    one model
    python -m benchmarks.exporting targets                            today's targets for measured figures

Existing runs are not repeated, and results keep the rows that are not measured again. One thread.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch

from recipes import exported

from ..results import Results, Row
from . import _answers, _runtimes, _speed, _start, _storage
from ._models import Case, case_of, fit

OUT = Path("results/exporting.json")
PARTS: Mapping[str, Callable[[Case], Iterator[Row]]] = {
    "answers": _answers.rows,
    "storage": _storage.rows,
    "runtimes": _runtimes.rows,
    "start": _start.rows,
    "speed": _speed.rows,
}
ONE = {"start": "ice", "speed": "ice"}  # parts for which one model is enough


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or measure and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exporting")
    parser.add_argument("parts", nargs="+", choices=("fit", "targets", *PARTS))
    parser.add_argument("--runs", type=Path, help="the folder of all runs")
    parser.add_argument("--cases", nargs="+", choices=exported.CASES, help="by default all")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    if given.parts == ["targets"]:
        _storage.retargeted(Results.load(given.out)).save(given.out)
        return
    if given.runs is None or "targets" in given.parts:
        parser.error("targets is a part of its own without --runs, and all others need --runs")
    torch.set_num_threads(1)
    cases = tuple(given.cases or exported.CASES)
    if "fit" in given.parts:
        fit(cases, given.runs)
    for part in (part for part in given.parts if part != "fit"):
        for name in cases if part not in ONE or given.cases else (ONE[part],):
            print(f"{part}, {name}", flush=True)
            measured = Results.here("python -m benchmarks.exporting", packages=("onnxruntime",))
            found = measured.continued_from(given.out)
            found.with_rows([*PARTS[part](case_of(name, given.runs))]).save(given.out)


if __name__ == "__main__":
    main()
