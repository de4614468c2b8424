"""The work of `foveal bulk`: finds, predicts and counts shards, in this process or on a cluster."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..scale import Bulk
from ..scale._records import Record
from ..scale._storage import Shard
from ..serving._engines import Engine
from ._bars import answering_bar
from ._speech import explain_engine, is_quiet


def answer_all(
    bundle: Path,
    inputs: tuple[str, ...],
    out: str,
    *,
    nbest: int,
    beam_size: int | None,
    text: str,
    max_symbols: int,
    workers: int | None,
    specs: Path | None,
    engine: Engine,
    device: str,
) -> None:
    """Predict all missing shards; with `workers`, in this many processes of a cluster."""
    job = Bulk(
        bundle=bundle,
        inputs=inputs,
        out=out,
        nbest=nbest,
        beam_size=beam_size,
        text=text,
        max_symbols=max_symbols,
        specs=specs,
        engine=engine,
        device=device,
    )
    shards = job.shards()
    job.clear_unfinished()
    missing = job.missing(shards)
    if len(missing) < len(shards) and not is_quiet():
        sys.stderr.write(f"{len(shards) - len(missing)} of {len(shards)} shards are already done\n")
    if workers is not None:
        from ..scale.cluster._joining import ray_cluster  # noqa: PLC0415 - an extra
        from ..scale.cluster._pool import answer_with_pool  # noqa: PLC0415 - an extra

        with ray_cluster(num_cpus=workers):
            _show(answer_with_pool(job, missing, workers), missing)
    else:
        _show(_answered_here(job, missing), missing)
    done = job.finish(shards)
    sys.stdout.write(
        f"{done.shards} shards, {done.lines} lines: {done.answered} answered, {done.rejected} rejected\n"
    )


def _answered_here(job: Bulk, shards: Sequence[Shard]) -> Iterator[Record]:
    if not shards:
        return
    answer = job.answerer(explain_engine)
    for shard in shards:
        with answering_bar(None) as answered:
            record = answer(shard, answered)
        yield record


def _show(records: Iterable[Record], shards: Sequence[Shard]) -> None:
    """Print a line for every finished shard."""
    for number, record in enumerate(records, start=1):
        if is_quiet():
            continue
        rejected = f", {record.rejected} rejected" if record.rejected else ""
        sys.stderr.write(
            f"[{number}/{len(shards)}] {record.input}: {record.answered} answered{rejected}\n"
        )
