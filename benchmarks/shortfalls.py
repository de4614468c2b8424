"""List the measured figures that miss their targets.

    python -m benchmarks.shortfalls             reads results/*.json
    python -m benchmarks.shortfalls DIRECTORY

A shortfall is not a failure: the exit code is 0 either way.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .results import Results, Row


def main(arguments: Sequence[str] | None = None) -> None:
    """Print every row that misses its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shortfalls")
    parser.add_argument("directory", type=Path, nargs="?", default=Path("results"))
    found = shortfalls(parser.parse_args(arguments).directory)
    console = Console()
    if not found:
        console.print("nothing falls short")
        return
    table = Table(title="figures that miss what was asked for")
    for column in ("made by", "what", "value", "unit", "asked for"):
        table.add_column(column, overflow="fold")
    for results, row in found:
        asked = f"{row.sense} {row.target:g}"
        table.add_row(results.made_by, row.name, f"{row.value:.3g}", row.unit, asked)
    console.print(table)


def shortfalls(directory: Path) -> list[tuple[Results, Row]]:
    """Return every row of the results that misses its target, with its file."""
    files = [Results.load(path) for path in sorted(directory.glob("*.json"))]
    return [(results, row) for results in files for row in results.missed()]


if __name__ == "__main__":
    main()
