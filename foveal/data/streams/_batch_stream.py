"""BatchStream: shuffled batches of examples of similar length, for one of several processes."""

from collections.abc import Callable
from typing import final

import numpy as np
from typing_extensions import override

from ...errors import DataError
from .._source import Source
from ._packed import Packed
from ._plan import BatchSize, Plan, make_plan
from ._pools import POOL_SIZE, Encode, Pool
from ._prepared import PreparedCorpus
from ._stream import AbstractStream, Batch, Prepared, part, rank_checked


@final
class BatchStream(AbstractStream[Batch]):
    """Batches of a source, made with the `encode` and `collate` of the task.

    An epoch contains every example once. Batches contain examples of similar length, in a random order that depends
    on seed and epoch. Every process draws the same batches and takes its share of the rows of each, so several
    processes together compute the same result as one.

    Examples wider than the budget, and examples for which `encode` returns None, are in no batch;
    `left_out` counts them.

    Args:
        source: The source of examples.
        encode: Converts an example to ids; None skips the example.
        collate: Converts encoded examples to a batch.
        budget: Maximum number of padded positions of a batch of all processes: for each row, the longest source,
            the longest target and the end token.
        batch_size: Number of rows of a batch of all processes, instead of a budget.
        seed: Seed of the random order, together with the epoch.
        rank: The rank of this process.
        world_size: The number of processes.
        shuffle: If False, batches come longest first, or in the order of the file with `by_length=False`.
        by_length: If True, group examples of similar length; otherwise keep the order of the examples.
        pool_size: Number of ids in memory at once, 4 bytes each. A smaller corpus is read once and kept. Defaults to
            `source.pool_size`, or to 4 million.

    Examples:
        >>> from foveal.data import Encoded, Example, InMemory, collate_seq2seq
        >>> source = InMemory(tuple(Example("ab" * n) for n in range(1, 7)))
        >>> encode = lambda example: Encoded([4] * len(example.source))
        >>> stream = BatchStream(source, encode, collate_seq2seq, batch_size=2)
        >>> sum(len(batch.indices) for batch in stream)
        6
    """

    def __init__(
        self,
        source: Source | PreparedCorpus,
        encode: Encode,
        collate: Callable[[Packed], Batch],
        *,
        budget: int | None = None,
        batch_size: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        shuffle: bool = True,
        by_length: bool = True,
        pool_size: int | None = None,
    ) -> None:
        rank_checked(rank, world_size)
        self._collate, self._rank, self._world_size = collate, rank, world_size
        self._size = BatchSize.checked(budget, batch_size)
        self._shuffle, self._by_length = shuffle, by_length
        super().__init__(
            source,
            encode,
            max_width=budget,
            min_rows=world_size,
            settings={
                "budget": budget,
                "batch_size": batch_size,
                "seed": seed,
                "shuffle": shuffle,
                "by_length": by_length,
                "pool_size": pool_size or source.pool_size or POOL_SIZE,
            },
        )

    @override
    def _prepare(self, pool: Pool, generator: np.random.Generator) -> Prepared[Batch]:
        if len(pool.packed) < self._world_size:
            raise DataError(
                f"BatchStream: got {len(pool.packed)} examples for {self._world_size} processes, "
                f"expected at least one per process. Use fewer processes, or more data."
            )
        plan = make_plan(
            pool.packed,
            self._size,
            generator=generator if self._shuffle else None,
            by_length=self._by_length,
            min_rows=self._world_size,
        )
        return _Batches(pool.packed, plan, self._collate, self._rank, self._world_size)


@final
class _Batches(Prepared[Batch]):
    def __init__(
        self,
        packed: Packed,
        plan: Plan,
        collate: Callable[[Packed], Batch],
        rank: int,
        world_size: int,
    ) -> None:
        self._packed, self._plan, self._collate = packed, plan, collate
        self._rank, self._world_size = rank, world_size

    @override
    def __len__(self) -> int:
        return len(self._plan)

    @override
    def batch(self, number: int) -> Batch:
        rows = part(self._plan.batch(number), self._rank, self._world_size)
        return self._collate(self._packed.take(rows))
