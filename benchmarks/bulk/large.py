"""Ten times the words: does the pool keep its rate, and a worker its memory?

    python -m benchmarks.bulk.large --runs runs          2,000,000 words

The search is greedy, which makes it some minutes instead of a quarter of an hour, and the more of them what
the pool itself takes for a word.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import measured_rows
from benchmarks.results import Results, Row, digest
from benchmarks.serving.models import FILES, SEED
from examples.support import DATA

from .beside import beside
from .pool import SHARDS, WORKERS

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
    result = Results.here("python -m benchmarks.bulk.large", packages=("ray", "pyarrow", "fsspec"))
    data = {name: digest(DATA / name) for name in FILES.values()}
    spec = {"seed": SEED, "shards": SHARDS, "workers": WORKERS, "words": list(SIZES)}
    replace(result.with_rows(rows), data=data, spec=spec).save(out)


if __name__ == "__main__":
    main()
