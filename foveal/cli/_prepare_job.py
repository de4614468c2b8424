"""The work of `foveal prepare`: finds, counts and writes shards, in this process or on a cluster."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ..data.streams._prepared import PreparedCorpus
from ..data.vocabularies._vocabularies import Vocabularies
from ..planning import plan
from ..planning._choices import Planned
from ..planning._drafting import say_reasons, with_given
from ..planning._signs import working
from ..scale._line_format import line_format
from ..scale._preparing import Corpus, Preparation, ShardExamples, corpus_shards
from ..scale._storage import Shard
from ..tasks.base._text_spec import AbstractTextSpec
from ._bars import counting_bar
from ._speech import explaining, is_quiet


def prepare(
    inputs: tuple[str, ...], out: Path, given: Sequence[str], *, workers: int | None
) -> None:
    """Prepare all missing shards; with `workers`, in this many processes of a cluster."""
    shards = corpus_shards(inputs, str(out))
    job, planned = _planned(explaining(), shards, out, given)
    if workers is not None:
        from ..scale.cluster._joining import ray_cluster  # noqa: PLC0415 - an extra
        from ..scale.cluster._pool import count_with_pool, write_with_pool  # noqa: PLC0415 - an extra

        with ray_cluster(num_cpus=workers):
            done = _prepared(
                job,
                lambda missing: count_with_pool(job, missing, workers),
                lambda missing, known: write_with_pool(job, known, missing, workers),
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
    """Return the preparation, and the run that it is for."""
    like, reason = line_format(shards[0])
    console.print(f"{shards[0].url}: {reason}", markup=False, soft_wrap=True)
    examples = ShardExamples(shards=shards, like=like)
    with working(console, "inferring the task from the files"):
        planned = plan(like, examples=examples)
    say_reasons(console, planned)
    for text in given:
        planned = with_given(planned, text)
    task = planned.run.task
    assert isinstance(task, AbstractTextSpec)  # the files contain texts
    with working(console, "training subword tokenizers, if the settings have any"):
        task = task.trained_on(examples)
    run = replace(planned.run, task=task, train=PreparedCorpus(path=str(out), like=like))
    job = Preparation(spec=task, like=like, shards=shards, out=str(out))
    return job, planned._replace(run=run)


def _prepared(
    job: Preparation,
    count: Callable[[Sequence[Shard]], Iterable[int]],
    write: Callable[[Sequence[Shard], Vocabularies], Iterable[int]],
) -> Corpus:
    """Run both passes, and return the corpus."""
    job.clear_unfinished()
    uncounted = job.uncounted()
    _watched("counting", count(uncounted), len(uncounted))
    known = job.vocabularies()
    unwritten = job.unwritten(known)
    if len(unwritten) < len(job.shards) and not is_quiet():
        there = len(job.shards) - len(unwritten)
        sys.stderr.write(f"{there} of {len(job.shards)} shards are already done\n")
    _watched("writing", write(unwritten, known), len(unwritten))
    return job.finish(known)


def _watched(text: str, done: Iterable[int], number: int) -> None:
    """Process shards with a bar that counts files."""
    with counting_bar(text, number) as one_more:
        for _ in done:
            one_more(1)
