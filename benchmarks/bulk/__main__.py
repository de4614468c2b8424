"""Measure, and write the results: see the package."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import measured_rows
from benchmarks.results import Row

from .beside import beside, save
from .faults import unlucky, with_faults
from .pool import SHARDS, WORKERS, shards

OUT = Path("results/scale_bulk.json")
SIZES = 20_000, 200_000
UNLUCKY = 60_000


def measured(run: Path, folder: Path) -> list[Row]:
    """Measure all figures."""
    found, rate, start = list[Row](), 0.0, 0.0
    for size in SIZES:
        # Only the largest size has a target: with fewer words, a shard takes less than half a second, and
        # scheduling takes a good part of it.
        pool, rows = beside(run, folder, size, least=0.9 if size == SIZES[-1] else None)
        rate, start = pool.rate, pool.start - WORKERS * size / SHARDS / pool.rate
        found += rows
    found += with_faults(run, folder / f"in{SIZES[-1]}", folder / "faults")
    words = shards(folder / f"in{UNLUCKY}", UNLUCKY)
    return found + unlucky(run, words, folder / "unlucky", rate, start)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    rows, out = measured_rows(
        measured,
        arguments,
        about="Bulk runs on Ray beside the bare predictor, and with faults.",
        out=OUT,
    )
    save("python -m benchmarks.bulk", SIZES, rows, out)


if __name__ == "__main__":
    main()
