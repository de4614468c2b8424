"""A resumable stream of batches.

    state = epoch, pool, start of the pool, next batch of the pool

The batches of a pool depend only on seed, epoch and pool, and reading a pool again gives the same batches. A
checkpoint therefore needs only these few numbers. For a large corpus, the stream reads the next pool gradually while
it yields the batches of the current one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Int

from ...errors import DataError, ValueRangeError
from .._example import Where
from .._source import Source
from ._pools import STRETCH, Encode, LeftOut, Pool, PoolReader, PoolStart, generator
from ._prepared import PreparedCorpus

Batch = TypeVar("Batch")


class Prepared(ABC, Generic[Batch]):
    """The batches of a pool."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, number: int) -> Batch:
        """Return one batch."""


class AbstractStream(ABC, Generic[Batch]):
    """Batches of a source, epoch after epoch, starting at any batch.

    `for batch in stream` yields the rest of the current epoch; `stream.forever()` does not end. `stream.state()`
    describes the position of the next batch.
    """

    def __init__(
        self,
        source: Source | PreparedCorpus,
        encode: Encode,
        *,
        max_width: int | None,
        min_rows: int,
        settings: Mapping[str, Any],
    ) -> None:
        self._source, self._settings = source, dict(settings)
        self._reader = PoolReader(
            source,
            encode,
            size=settings["pool_size"],
            max_width=max_width,
            min_rows=min_rows,
            seed=settings["seed"],
            shuffle=settings["shuffle"],
        )
        self._begin(epoch=0, pool=0, start=PoolStart(), batch=0)

    @abstractmethod
    def _prepare(self, pool: Pool, generator: np.random.Generator) -> Prepared[Batch]:
        """Make the batches of a pool."""

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, counted from 0."""
        return self._epoch

    @property
    def num_examples(self) -> int | None:
        """The number of examples of an epoch; None for a corpus that is too large for memory."""
        return self._reader.num_examples

    @property
    def num_batches(self) -> int | None:
        """The number of batches of this epoch; None for a corpus that is too large for memory, or before the
        first batch.
        """
        known = self.num_examples is not None and self._prepared is not None
        return len(self._prepared) if known and self._prepared is not None else None

    @property
    def left_out(self) -> LeftOut:
        """Examples of this epoch that are in no batch: too long, or skipped by `encode`."""
        return self._reader.left_out

    def where(self, index: int) -> Where:
        """Return the file and line of an example, given its index in a batch."""
        return self._reader.where(index)

    def __iter__(self) -> Iterator[Batch]:
        while (batch := self._next()) is not None:
            yield batch

    def forever(self) -> Iterator[Batch]:
        """Yield the batches of this epoch, of the next epoch, and so on."""
        while True:
            yield from self

    def state(self) -> dict[str, Any]:
        """Return the state of the stream as data for JSON."""
        return {
            "epoch": self._epoch,
            "pool": self._pool,
            "start": self._start.to_data(),
            "batch": self._batch,
            "corpus": self._reader.fingerprint,
            "settings": self._settings,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from the state of another stream.

        The number of processes may differ: the batches of all processes together stay the same.
        """
        missing = sorted(self.state().keys() - state.keys())
        if missing:
            raise DataError(
                f"{type(self).__name__}: the state lacks {', '.join(missing)}. Use a state that "
                f"state() returned."
            )
        for name in ("settings", "corpus"):
            now = self.state()[name]
            if state[name] != now:
                raise DataError(
                    f"{type(self).__name__}: the {name} of the stream changed after the state was "
                    f"saved: it was {state[name]}, and is now {now}. Restore into a stream of the "
                    f"same files and settings, or start again."
                )
        self._begin(
            state["epoch"], state["pool"], PoolStart.from_data(state["start"]), state["batch"]
        )

    def _begin(self, epoch: int, pool: int, start: PoolStart, batch: int) -> None:
        self._epoch, self._pool, self._start, self._batch = epoch, pool, start, batch
        self._pools: Iterator[Pool | None] | None = None
        self._prepared: Prepared[Batch] | None = None
        self._next_pool: Pool | None = None
        self._num_stretches = 1  # stretches of the next pool to read with each batch of this one

    def _next(self) -> Batch | None:
        """Return the next batch; None, once, at the end of an epoch."""
        if self._pools is None:
            self._pools = self._reader.pools(self._epoch, self._start)
            if not self._enter(self._pool, self._batch):
                raise self._empty()
        while self._prepared is not None and self._batch >= len(self._prepared):
            if not self._enter(self._pool + 1, 0):
                self._begin(self._epoch + 1, 0, PoolStart(), 0)
                return None
        assert self._prepared is not None
        self._batch += 1
        self._read_ahead()
        return self._prepared.batch(self._batch - 1)

    def _enter(self, number: int, batch: int) -> bool:
        """Start the next pool, and return False if there is none."""
        assert self._pools is not None
        pool = self._next_pool or next((pool for pool in self._pools if pool is not None), None)
        if pool is None:
            return False
        self._pool, self._start, self._batch = number, pool.start, batch
        self._next_pool = None
        self._prepared = self._prepare(pool, generator(self._settings["seed"], self._epoch, number))
        self._num_stretches = 1 + len(pool.packed) // (STRETCH * max(1, len(self._prepared)))
        return True

    def _read_ahead(self) -> None:
        """Read a slightly larger fraction of the next pool than one batch is of the current pool."""
        assert self._pools is not None
        for _ in range(self._num_stretches):
            if self._next_pool is not None:
                return
            self._next_pool = next(self._pools, None)

    def _empty(self) -> DataError:
        files = [file for shard in self._reader.shards for file in shard.files]
        names = ", ".join(files[:3]) + " ..." * (len(files) > 3) or "the source"
        if self.left_out.num_unreadable:
            return DataError(
                f"{names}: all {self.left_out.num} examples were skipped, "
                f"{self.left_out.num_unreadable} because their images cannot be read; the first: "
                f"{self.left_out.why}"
            )
        if self.left_out.num:
            return DataError(
                f"{names}: all {self.left_out.num} examples were skipped, the first at "
                f"{self.left_out.first}: they are too long for the budget, or the task cannot use "
                f"them. Increase the budget."
            )
        return DataError(
            f"{names}, line 1: expected at least one example, got none. Use a file that "
            f"is not empty."
        )


def rank_checked(rank: int, world_size: int) -> None:
    """Check that 0 <= rank < world_size."""
    if not 0 <= rank < world_size:
        raise ValueRangeError(
            f"a stream: rank must be from 0 to world_size - 1, got rank={rank} of "
            f"world_size={world_size}. Use the values of torch.distributed."
        )


def part(rows: Int[np.ndarray, " B"], rank: int, world_size: int) -> Int[np.ndarray, " b"]:
    """Return the rows of one process in a batch of all processes: every world_size-th row."""
    return rows[rank::world_size]
