"""Does the pool keep its rate, and a worker its memory, with ten times the words?

    python -m benchmarks.bulk.large --runs runs          2,000,000 words

The search is greedy: the run takes minutes instead of a quarter of an hour, and the pool's overhead is a
larger fraction of the time per word.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import measured_rows
from benchmarks.results import Row

from .beside import beside, save

OUT = Path("results/scale_bulk_large.json")
SIZES = 200_000, 2_000_000


def measured(run: Path, folder: Path) -> list[Row]:
    """Measure all figures."""
    small, large = (beside(run, folder, size, width=1, least=0.9) for size in SIZES)
    grown = large.pool.worker_mib / small.pool.worker_mib
    name = f"memory of a worker, {SIZES[1]:,} words to {SIZES[0]:,}"
    return [*small.rows, *large.rows, Row(name=name, value=grown, unit="x")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    rows, out = measured_rows(
        measured, arguments, about="Bulk runs on Ray, ten times the words.", out=OUT
    )
    save("python -m benchmarks.bulk.large", SIZES, rows, out)


if __name__ == "__main__":
    main()
