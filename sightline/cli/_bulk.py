"""`sightline bulk`: many files answered, each beside its name, and only those that are missing."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from ..scale import Bulk, Record, Shard
from ._bars import answering_bar


def command(
    bundle: Positional[Path],
    /,
    *,
    inputs: Annotated[tuple[str, ...], arg(name="in")],
    out: str,
    nbest: int = 1,
    width: int | None = None,
    text: str = "source",
    max_symbols: int = 2000,
    ray: bool = False,
    workers: int | None = None,
) -> None:
    """Answer all lines of files into a folder; started again, only what is missing.

    Args:
        bundle: the folder of a model that `fit` made.
        inputs: files, URLs or patterns in quotes: a text on each line, or JSON objects (.jsonl); plain, gzip
            or zstd.
        out: a folder or URL: NAME.parquet, and NAME.rejects.jsonl for lines that have no answer.
        nbest: answers for each line, the best first.
        width: candidates kept in search; 1 is greedy. By default as the model was fitted, or nbest.
        text: name of what is asked, in JSON lines.
        max_symbols: of a line; a longer one is rejected.
        ray: on a Ray cluster, that of RAY_ADDRESS or else this machine's cores.
        workers: processes that answer, with --ray; by default as many as this machine has cores.
    """
    job = Bulk(
        bundle=bundle,
        inputs=inputs,
        out=out,
        nbest=nbest,
        width=width,
        text=text,
        max_symbols=max_symbols,
    )
    shards = job.shards()
    job.clear_unfinished()
    missing = job.missing(shards)
    if len(missing) < len(shards):
        sys.stderr.write(
            f"{len(shards) - len(missing)} of {len(shards)} shards are there already\n"
        )
    if ray:
        from ..scale.cluster import answered_by_pool, joined  # noqa: PLC0415 - an extra

        number = workers or os.cpu_count() or 1
        with joined(num_cpus=number):
            _show(answered_by_pool(job, missing, number), missing)
    else:
        _show(_answered_here(job, missing), missing)
    done = job.finish(shards)
    sys.stdout.write(
        f"{done.shards} shards, {done.lines} lines: {done.answered} answered, {done.rejected} rejected\n"
    )


def _answered_here(job: Bulk, shards: Sequence[Shard]) -> Iterator[Record]:
    if not shards:
        return
    answer = job.answerer()
    for shard in shards:
        with answering_bar(None) as answered:
            record = answer(shard, answered)
        yield record


def _show(records: Iterable[Record], shards: Sequence[Shard]) -> None:
    """A line for every shard that is done."""
    for number, record in enumerate(records, start=1):
        rejected = f", {record.rejected} rejected" if record.rejected else ""
        sys.stderr.write(
            f"[{number}/{len(shards)}] {record.input}: {record.answered} answered{rejected}\n"
        )
