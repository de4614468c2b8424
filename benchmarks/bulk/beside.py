"""A pool compared with the same number of bare predictors."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Results, Row, digest
from benchmarks.serving.models import FILES, SEED
from examples.support import DATA

from .pool import SHARDS, WORKERS, Pooled, bare_rate, pooled, shards


class Beside(NamedTuple):
    """A pool, and its figures compared with the bare predictors."""

    pool: Pooled
    rows: list[Row]


def beside(
    run: Path, folder: Path, size: int, *, width: int | None = None, least: float | None = None
) -> Beside:
    """Predict words with a pool, and with bare predictors before and after it.

    Args:
        run: the folder of the model.
        folder: an empty folder to work in.
        size: the number of words.
        width: the beam size; defaults to the model's setting.
        least: the target of the ratio.
    """
    name = f"{size:,} words" + ("" if width is None else f", width {width}")
    words = shards(folder / f"in{size}", size)
    before = bare_rate(run, width)
    more = [] if width is None else ["--beam-size", str(width)]
    pool = pooled(run, words, folder / f"out{size}", *more)
    bare = statistics.mean((before, bare_rate(run, width)))
    ratio = Row(name=f"{name}, pool to {WORKERS} bare predictors", value=pool.rate / bare, unit="x")
    if least is not None:
        ratio = Row(name=ratio.name, value=ratio.value, unit="x", target=least, sense=">=")
    lost = f"{name}, words not in the output exactly once"
    return Beside(
        pool,
        [
            Row(name=f"{name}, pool of {WORKERS}, words/s", value=pool.rate, unit="1/s"),
            Row(name=f"{name}, {WORKERS} bare predictors, words/s", value=bare, unit="1/s"),
            ratio,
            Row(name=f"{name}, to the first shard", value=pool.start, unit="s"),
            Row(name=f"{name}, memory of a worker, most", value=pool.worker_mib, unit="MiB"),
            Row(name=lost, value=pool.wrong, unit="words", target=0, sense="<="),
        ],
    )


def save(made_by: str, sizes: Sequence[int], rows: Sequence[Row], out: Path) -> None:
    """Write the figures of pools with the sizes of their inputs."""
    result = Results.here(made_by, packages=("ray", "pyarrow", "fsspec"))
    data = {name: digest(DATA / name) for name in FILES.values()}
    spec = {"seed": SEED, "shards": SHARDS, "workers": WORKERS, "words": list(sizes)}
    replace(result.with_rows(rows), data=data, spec=spec).save(out)
