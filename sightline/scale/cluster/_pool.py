"""Shards answered by a pool of processes: Ray Data hands them out, starts again whoever dies, and hands out
again what was lost. Answers go from the worker to their place; only records come back.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import ray.data
from ray.data import ActorPoolStrategy, DataContext

from .._bulk import Bulk
from .._records import Record
from .._storage import Shard
from ._bundles import packed, unpacked


def answered_by_pool(job: Bulk, shards: Sequence[Shard], workers: int) -> Iterator[Record]:
    """Answer shards with so many workers; records come as they are done, in any order.

    A worker need not see the disk of this machine for the model, which is sent to it and verified there
    before it is loaded. It must reach the input and the output.
    """
    if not shards:
        return
    DataContext.get_current().enable_progress_bars = False  # the command has its own
    items = [shard._asdict() for shard in shards]
    records = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        _Worker,
        fn_constructor_args=(job, packed(job.bundle)),
        batch_size=1,
        num_cpus=1,
        compute=ActorPoolStrategy(size=min(workers, len(shards))),
    )
    for row in records.iter_rows():
        record = Record.from_data(json.loads(row["record"]))
        assert record is not None
        yield record


@final
class _Worker:
    """A process with the model in its memory."""

    def __init__(self, job: Bulk, files: Mapping[str, bytes]) -> None:
        with unpacked(files) as folder:
            self._answer = replace(job, bundle=folder).answerer()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        shards = [
            Shard(*map(str, fields))
            for fields in zip(*(batch[name] for name in Shard._fields), strict=True)
        ]
        records = [self._answer(shard, _nobody).to_data() for shard in shards]
        return {"record": np.array([json.dumps(record) for record in records])}


def _nobody(number: int) -> None:
    """Nobody is told of lines: a worker is not on the terminal."""
    del number
