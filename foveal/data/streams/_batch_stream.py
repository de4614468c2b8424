"""BatchStream: examples in batches of about one length, shuffled, for one process of several."""

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
    """Batches of a source, made by the task's `encode` and `collate`.

    An epoch has every example once. Batches have examples of about one length, and come in an order
    drawn from seed and epoch. Every process draws the same batches and takes its own rows of each,
    so several processes together compute what one would.

    Examples wider than the budget, and those for which `encode` gives None, are in no batch;
    `left_out` counts them.

    >>> from foveal.data import Encoded, Example, InMemory, collate_seq2seq
    >>> source = InMemory(tuple(Example("ab" * n) for n in range(1, 7)))
    >>> encode = lambda example: Encoded([4] * len(example.source))
    >>> stream = BatchStream(source, encode, collate_seq2seq, batch_size=2)
    >>> sum(len(batch.indices) for batch in stream)
    6

    Args:
        source: what to read.
        encode: an example as numbers; None leaves it out.
        collate: encoded examples as a batch.
        budget: padded places of a batch of all processes at most: for each row, the longest source,
            the longest target and the end symbol.
        batch_size: rows of a batch of all processes, instead of a budget.
        seed: what the order is drawn from, with the epoch.
        rank: the number of this process.
        world_size: how many processes there are.
        shuffle: without it, batches come longest first, or by_length=False in the order of the file.
        by_length: batches of about one length; without it of any, as the examples come.
        pool_size: ids held at once, 4 bytes each. A corpus with fewer is read once and kept.
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
        pool_size: int = POOL_SIZE,
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
                "pool_size": pool_size,
            },
        )

    @override
    def _prepare(self, pool: Pool, generator: np.random.Generator) -> Prepared[Batch]:
        if len(pool.packed) < self._world_size:
            raise DataError(
                f"BatchStream: {len(pool.packed)} examples for {self._world_size} processes, "
                f"expected at least one for each. Use fewer processes, or more data."
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
