"""The command of a benchmark that uses the models of `benchmarks.serving`: its arguments, output and timing."""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.results import Row
from benchmarks.serving.models import USUAL, fitted
from benchmarks.timing import use_one_thread


def measured_rows(
    measured: Callable[[Path, Path], list[Row]],
    arguments: Sequence[str] | None,
    *,
    about: str,
    out: Path,
) -> tuple[list[Row], Path]:
    """Measure with the usual model and an empty folder, and print the figures.

    Args:
        measured: returns all figures, given the folder of a model and an empty folder.
        arguments: arguments of the command; None means the arguments of the process.
        about: the description of the command.
        out: the default path of the results file.

    Returns:
        The figures with the elapsed time, and the path of the results file.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--runs", type=Path, required=True, help="fitted there if need be")
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args(arguments)
    use_one_thread()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(fitted(options.runs)[USUAL], Path(folder))
    for row in rows:
        print(f"{row.name}: {row.value:.4g} {row.unit}{'  MISSED' if row.misses else ''}")
    seconds = Row(name="wall-clock of all this", value=time.perf_counter() - began, unit="s")
    return [*rows, seconds], options.out
