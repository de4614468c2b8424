"""Ten times the words: does the pool keep its rate, and a worker its memory?

    python -m benchmarks.bulk.large --runs runs          2,000,000 words

The search is greedy, which makes it some minutes instead of a quarter of an hour, and the more of them what
the pool itself takes for a word.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import measured_rows
from benchmarks.results import Row

from .beside import beside, save

OUT = Path("results/scale_bulk_large.json")
SIZES = 200_000, 2_000_000


def measured(run: Path, folder: Path) -> list[Row]:
    """All figures."""
    small, large = (beside(run, folder, size, width=1, least=0.9) for size in SIZES)
    grown = large.pool.worker_mib / small.pool.worker_mib
    name = f"memory of a worker, {SIZES[1]:,} words to {SIZES[0]:,}"
    return [*small.rows, *large.rows, Row(name=name, value=grown, unit="x")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the results."""
    rows, out = measured_rows(
        measured, arguments, about="Bulk runs on Ray, ten times the words.", out=OUT
    )
    save("python -m benchmarks.bulk.large", SIZES, rows, out)


if __name__ == "__main__":
    main()
