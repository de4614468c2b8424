"""A pool of processes for shards: Ray Data distributes the shards, restarts workers that die, and reassigns
lost shards. A worker writes its output directly to its destination; only a short summary comes back.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
import ray.data
from ray.data import ActorPoolStrategy, DataContext

from ...data.vocabularies._vocabularies import Vocabularies
from .._bulk import Bulk
from .._preparing import Preparation
from .._records import Record
from .._storage import Shard
from ._bundles import packed, unpacked
from ._gpus import gpu_share

# Processes one shard after the other, and returns JSON data.
Work: TypeAlias = Callable[[Shard], Any]


def answer_with_pool(job: Bulk, shards: Sequence[Shard], workers: int) -> Iterator[Record]:
    """Predict shards with this many workers; yields records as they finish, in any order.

    A worker need not see the disk of this machine: the model is sent to it and verified there before it is
    loaded. It must reach the input, the output and the file of `job.specs`, which it runs.
    """
    job = replace(job, specs=None if job.specs is None else job.specs.resolve())
    share = gpu_share(job.device, workers)
    job = replace(job, device="cuda" if share else "cpu")
    begin = partial(_answering, job, packed(job.bundle))
    for data in _by_pool(begin, shards, workers, share):
        record = Record.from_data(data)
        assert record is not None
        yield record


def count_with_pool(job: Preparation, shards: Sequence[Shard], workers: int) -> Iterator[int]:
    """Count the tokens of shards with this many workers, which must reach the input and the output."""
    return _by_pool(lambda: job.count, shards, workers)


def write_with_pool(
    job: Preparation, known: Vocabularies, shards: Sequence[Shard], workers: int
) -> Iterator[int]:
    """Write the parts of shards with this many workers."""
    return _by_pool(partial(job.writer, known), shards, workers)


def _by_pool(
    begin: Callable[[], Work], shards: Sequence[Shard], workers: int, share: float = 0.0
) -> Iterator[Any]:
    """Yield the summary of each shard as it finishes; every worker is set up once, with this share of a GPU."""
    if not shards:
        return
    DataContext.get_current().enable_progress_bars = False  # the command has its own
    items = [shard._asdict() for shard in shards]
    results = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        _Worker,
        fn_constructor_args=(begin,),
        batch_size=1,
        num_cpus=1,
        num_gpus=share or None,
        compute=ActorPoolStrategy(size=min(workers, len(shards))),
    )
    for row in results.iter_rows():
        yield json.loads(row["result"])


@final
class _Worker:
    """A worker process, which keeps its model in memory for all shards."""

    def __init__(self, begin: Callable[[], Work]) -> None:
        self._work = begin()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        shards = [
            Shard(*map(str, fields))
            for fields in zip(*(batch[name] for name in Shard._fields), strict=True)
        ]
        return {"result": np.array([json.dumps(self._work(shard)) for shard in shards])}


def _answering(job: Bulk, files: Mapping[str, bytes]) -> Work:
    with unpacked(files) as folder:
        answer = replace(job, bundle=folder).answerer()
    return lambda shard: answer(shard, _nobody).to_data()


def _nobody(number: int) -> None:
    """Ignore progress: a worker has no terminal."""
    del number
