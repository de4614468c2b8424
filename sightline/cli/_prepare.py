"""`sightline prepare`: a corpus as numbers, so that `fit` need not read any text."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, UseAppendAction, arg

from ..data import PreparedCorpus
from ..scale import Corpus, Preparation, Shard, ShardExamples, corpus_shards, line_format
from ..tasks import TextTaskSpec, Vocabularies
from ..training import Planned, plan
from ._bars import counting_bar
from ._planning import say_reasons, with_given


def command(
    inputs: Positional[tuple[str, ...]],
    /,
    *,
    out: Path,
    settings_given: Annotated[UseAppendAction[tuple[str, ...]], arg(name="set")] = (),
    ray: bool = False,
    workers: int | None = None,
) -> None:
    """Cut a corpus into symbols, count them, and write it as numbers; started again, only what is missing.

    `sightline fit OUT --dev dev.tsv --out runs/x` then trains on it, and reads no text.

    Args:
        inputs: files, URLs or patterns in quotes, an example on each line: tab-separated, JSON lines or plain
            text; plain, gzip or zstd.
        out: the folder of the corpus; every process that trains must see it.
        settings_given: one setting as path=value, for example source.unit=code_point; may be repeated.
        ray: on a Ray cluster, that of RAY_ADDRESS or else this machine's cores.
        workers: processes, with --ray; by default as many as this machine has cores.
    """
    console = Console(highlight=False)
    shards, number = corpus_shards(inputs, str(out)), workers or os.cpu_count() or 1
    job, planned = _planned(console, shards, out, settings_given)
    if ray:
        from ..scale.cluster import (  # noqa: PLC0415 - an extra
            counted_by_pool,
            joined,
            written_by_pool,
        )

        with joined(num_cpus=number):
            done = _prepared(
                job,
                lambda missing: counted_by_pool(job, missing, number),
                lambda missing, known: written_by_pool(job, known, missing, number),
            )
    else:
        done = _prepared(
            job,
            lambda missing: map(job.count, missing),
            lambda missing, known: map(job.writer(known), missing),
        )
    planned.save(out)
    rejected = f", {done.rejected:,} lines rejected" if done.rejected else ""
    sys.stdout.write(f"{done.examples:,} examples in {done.parts:,} parts{rejected}\n")


def _planned(
    console: Console, shards: Sequence[Shard], out: Path, given: Sequence[str]
) -> tuple[Preparation, Planned]:
    """What to prepare, and the run that it is for."""
    like, reason = line_format(shards[0])
    console.print(f"{shards[0].url}: {reason}", markup=False, soft_wrap=True)
    examples = ShardExamples(shards=shards, like=like)
    with console.status("finding out what the files are for"):
        planned = plan(like, examples=examples)
    say_reasons(console, planned)
    for text in given:
        planned = with_given(planned, text)
    task = planned.run.task
    assert isinstance(task, TextTaskSpec)  # the files are of texts
    with console.status("learning subwords, where they are asked for"):
        task = task.trained_on(examples)
    assert isinstance(task, TextTaskSpec)
    run = replace(planned.run, task=task, train=PreparedCorpus(path=str(out), like=like))
    job = Preparation(spec=task, like=like, shards=shards, out=str(out))
    return job, planned._replace(run=run)


def _prepared(
    job: Preparation,
    count: Callable[[Sequence[Shard]], Iterable[int]],
    write: Callable[[Sequence[Shard], Vocabularies], Iterable[int]],
) -> Corpus:
    """Both passes, and what they came to."""
    job.clear_unfinished()
    uncounted = job.uncounted()
    _watched("counting", count(uncounted), len(uncounted))
    known = job.vocabularies()
    unwritten = job.unwritten(known)
    if len(unwritten) < len(job.shards):
        there = len(job.shards) - len(unwritten)
        sys.stderr.write(f"{there} of {len(job.shards)} shards are there already\n")
    _watched("writing", write(unwritten, known), len(unwritten))
    return job.finish(known)


def _watched(text: str, done: Iterable[int], number: int) -> None:
    """Do it, with a bar that counts files."""
    with counting_bar(text, number) as one_more:
        for _ in done:
            one_more(1)
