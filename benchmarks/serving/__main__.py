"""Measure, and write the results: see the package."""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from benchmarks.results import Results, Row, digest
from benchmarks.served import served
from benchmarks.timing import use_one_thread
from examples.support import DATA

from .capacity import capacity
from .endings import endings, reloads
from .models import FILES, SEED, USUAL, WIDTHS, fitted, texts
from .overload import overload
from .throughput import CONCURRENCY, alone, throughput

OUT = Path("results/serving.json")


def measured(runs: Path) -> list[Row]:
    """Measure all figures."""
    folders, asked = fitted(runs), texts()
    run = folders[USUAL]
    with tempfile.TemporaryDirectory() as folder, served([run], Path(folder) / "log") as server:
        found, sustainable = throughput(server, run, asked)
        found += alone(server, run, asked)
        found += overload(server, run.name, asked, sustainable)
    found += reloads(run, asked)
    found += endings(run, asked)
    return found + capacity(folders, asked)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description="What the server costs, and what it withstands.")
    parser.add_argument("--runs", type=Path, help="a folder of runs, fitted there if need be")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    use_one_thread()
    began = time.perf_counter()
    folder = tempfile.TemporaryDirectory() if options.runs is None else nullcontext(options.runs)
    with folder as runs:
        rows = measured(Path(runs))
    for row in rows:
        print(f"{row.name}: {row.value:.4g} {row.unit}{'  MISSED' if row.misses else ''}")
    seconds = Row(name="wall-clock of all this", value=time.perf_counter() - began, unit="s")
    packages = ("fastapi", "starlette", "uvicorn", "h11")
    result = Results.here("python -m benchmarks.serving", packages=packages)
    data = {name: digest(DATA / name) for name in FILES.values()}
    spec = {"seed": SEED, "concurrency": CONCURRENCY, "hidden sizes": list(WIDTHS.values())}
    replace(result.with_rows([*rows, seconds]), data=data, spec=spec).save(options.out)


if __name__ == "__main__":
    main()
