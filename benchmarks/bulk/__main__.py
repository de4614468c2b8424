"""Measure, and write the results: see the package."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import measured_rows
from benchmarks.results import Results, Row, digest
from benchmarks.serving.models import FILES, SEED
from examples.support import DATA

from .faults import unlucky, with_faults
from .pool import SHARDS, WORKERS, bare_rate, pooled, shards

OUT = Path("results/scale_bulk.json")
SIZES = 20_000, 200_000
UNLUCKY = 60_000


def measured(run: Path, folder: Path) -> list[Row]:
    """All figures."""
    found, rate, start = list[Row](), 0.0, 0.0
    for size in SIZES:
        words, name = shards(folder / f"in{size}", size), f"{size:,} words"
        before = bare_rate(run)
        pool = pooled(run, words, folder / f"out{size}")
        bare = statistics.mean((before, bare_rate(run)))
        rate, start = pool.rate, pool.start - WORKERS * size / SHARDS / pool.rate
        found += [
            Row(name=f"{name}, pool of {WORKERS}, words/s", value=pool.rate, unit="1/s"),
            Row(name=f"{name}, {WORKERS} bare predictors, words/s", value=bare, unit="1/s"),
            Row(
                name=f"{name}, pool to {WORKERS} bare predictors",
                value=pool.rate / bare,
                unit="x",
                # Of so few words a shard takes less than half a second, and handing it out its part.
                target=0.9 if size == SIZES[-1] else None,
                sense=">=" if size == SIZES[-1] else None,
            ),
            Row(name=f"{name}, to the first shard", value=pool.start, unit="s"),
            Row(name=f"{name}, memory of a worker, most", value=pool.worker_mib, unit="MiB"),
            Row(
                name=f"{name}, words not in the output exactly once",
                value=pool.wrong,
                unit="words",
                target=0,
                sense="<=",
            ),
        ]
    found += with_faults(run, folder / f"in{SIZES[-1]}", folder / "faults")
    words = shards(folder / f"in{UNLUCKY}", UNLUCKY)
    return found + unlucky(run, words, folder / "unlucky", rate, start)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the results."""
    rows, out = measured_rows(
        measured,
        arguments,
        about="Bulk runs on Ray beside the bare predictor, and with faults.",
        out=OUT,
    )
    result = Results.here("python -m benchmarks.bulk", packages=("ray", "pyarrow", "fsspec"))
    data = {name: digest(DATA / name) for name in FILES.values()}
    spec = {"seed": SEED, "shards": SHARDS, "workers": WORKERS, "words": list(SIZES)}
    replace(result.with_rows(rows), data=data, spec=spec).save(out)


if __name__ == "__main__":
    main()
