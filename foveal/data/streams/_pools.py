"""Pools: a source read in order and encoded, in parts of bounded size.

A corpus that fits into one pool is read once and kept. A larger one is read again in every epoch,
a pool at a time: shards (blocks of plain files, whole packed files) in an order drawn from seed and
epoch, examples of a shard in the order of the file. A pool is named by the position at which it
begins, so it can be read again from there.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...errors import DataError, ImageError
from .._bytes import num_bytes
from .._example import Example, Where
from .._source import Cursor, Position, Shard, Source
from ..images._pictures import num_places
from ._packed import Encoded, Packed, Packer
from ._prepared import PreparedCorpus

Encode: TypeAlias = Callable[[Example], Encoded | None]

POOL_SIZE = 1 << 22  # ids: 16 MB, some 150,000 words or 50,000 sentences
BLOCK = 1 << 18  # bytes of a plain file that are read in a row: a pool has a dozen of them
STRETCH = 4  # examples read in a row, before who waits for a pool may do something else
_LINE_BITS = 40  # of an index; the bits above are the shard


class PoolStart(NamedTuple):
    """Where a pool begins: in which shard of the epoch's order, and where in it."""

    shard: int = 0
    position: Position | None = None

    def to_data(self) -> list[Any]:
        """As what JSON can hold."""
        return [self.shard, None if self.position is None else self.position.to_data()]

    @classmethod
    def from_data(cls, data: list[Any]) -> "PoolStart":
        """What `to_data` wrote."""
        return cls(data[0], None if data[1] is None else Position.from_data(data[1]))


class Pool(NamedTuple):
    """Encoded examples, and where reading them began."""

    packed: Packed
    start: PoolStart
    is_whole: bool  # nothing of the corpus is outside


class LeftOut(NamedTuple):
    """Examples that no batch has: how many in this epoch, and the first; of how many the picture
    cannot be read, and what is wrong with the first of these.
    """

    num: int = 0
    first: Where | None = None
    num_unreadable: int = 0
    why: str = ""

    def and_one(self, where: Where | None, why: str = "") -> "LeftOut":
        """One more."""
        return LeftOut(
            self.num + 1,
            self.first or where,
            self.num_unreadable + bool(why),
            self.why or why,
        )


class PoolReader:
    """Reads pools of a source."""

    def __init__(
        self,
        source: Source | PreparedCorpus,
        encode: Encode,
        *,
        size: int,
        max_width: int | None,
        min_rows: int,
        seed: int,
        shuffle: bool,
    ) -> None:
        self.left_out = LeftOut()
        self._source, self._encode = source, encode
        self._size, self._max_width, self._min_rows = size, max_width, min_rows
        self._seed, self._shuffle = seed, shuffle
        self._whole: Pool | None = None

    @functools.cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The parts of the source; found when they are first asked for."""
        return self._source.shards(block=BLOCK if self._shuffle else None)

    @property
    def num_examples(self) -> int | None:
        """How many examples there are, if they are all in one pool that has been read."""
        return None if self._whole is None else len(self._whole.packed)

    def pools(self, epoch: int, start: PoolStart) -> Iterator[Pool | None]:
        """The pools of an epoch from a start on; None after every stretch of examples before the next
        one is full, so that reading can be spread over the batches of the pool before.
        """
        if self._whole is not None:
            yield self._whole
            return
        self.left_out = LeftOut()
        for pool in self._read(epoch, start):
            if pool is not None and pool.is_whole:
                # Epochs read shards in different orders; what is kept must not depend on it.
                canonical = pool.packed.take(np.argsort(pool.packed.indices, kind="stable"))
                self._whole = pool = pool._replace(packed=canonical)  # noqa: PLW2901 - in its place
            yield pool

    def where(self, index: int) -> Where:
        """The place of the example with an index."""
        files = self.shards[index >> _LINE_BITS].files
        number = index & ((1 << _LINE_BITS) - 1)
        return Where(files[0] if files else "memory", number, self._source.unit)

    @functools.cached_property
    def fingerprint(self) -> list[int]:
        """What tells a changed corpus: how many files, and their bytes."""
        files = {file for shard in self.shards for file in shard.files}
        return [len(files), sum(map(num_bytes, files))]

    def _read(self, epoch: int, start: PoolStart) -> Iterator[Pool | None]:
        """Pools, each given out when as many examples follow it as a batch needs: fewer than that
        at the end of an epoch go into the pool before, for they would be no batch of their own.
        """
        full: tuple[Packer, PoolStart] | None = None
        packer, begin = Packer(), start
        after: list[tuple[Encoded, int]] = []  # what the packer has after a full one
        for index, encoded, here in self._encoded_from(epoch, start):
            packer.append(encoded, index)
            if full is not None:
                after.append((encoded, index))
                if len(after) == self._min_rows:
                    yield Pool(full[0].packed(), full[1], is_whole=False)
                    full, after = None, []
            if full is None and packer.size >= self._size and len(packer) >= self._min_rows:
                full, packer, begin = (packer, begin), Packer(), here()
            if len(packer) % STRETCH == 0:
                yield None
        if full is not None:
            for encoded, index in after:
                full[0].append(encoded, index)
            yield Pool(full[0].packed(), full[1], is_whole=False)
        elif len(packer):
            yield Pool(packer.packed(), begin, is_whole=begin == PoolStart())

    def _encoded_from(
        self, epoch: int, start: PoolStart
    ) -> Iterator[tuple[int, Encoded, Callable[[], PoolStart]]]:
        """Index, ids, and what tells where the next example is, of all examples from a start on."""
        order = self._order(epoch)
        for number in range(start.shard, len(order)):
            shard = order[number] << _LINE_BITS
            position = start.position if number == start.shard else None
            cursor: Cursor[Any] = self._source.open(self.shards[order[number]], position)
            here = functools.partial(_here, number, cursor)
            for example in cursor:
                index = shard | cursor.number(example)
                try:
                    encoded, why = self._encoded(example), ""
                except ImageError as error:  # one file of thousands does not end a run
                    encoded, why = None, str(error)
                if encoded is None:
                    self.left_out = self.left_out.and_one(self._place(example, index), why)
                else:
                    yield index, encoded, here

    def _place(self, example: Example | Encoded, index: int) -> Where | None:
        return example.where if isinstance(example, Example) else self.where(index)

    def _order(self, epoch: int) -> list[int]:
        shards = np.arange(len(self.shards))
        if not self._shuffle:
            return shards.tolist()
        return generator(self._seed, epoch).permutation(shards).tolist()

    def _encoded(self, example: Example | Encoded) -> Encoded | None:
        encoded = example if isinstance(example, Encoded) else self._numbered(example)
        if encoded is None or self._max_width is None:
            return encoded
        width = encoded.num_positions + 1
        if encoded.picture is not None:
            width += num_places(encoded.picture)
        return encoded if width <= self._max_width else None

    def _numbered(self, example: Example) -> Encoded | None:
        try:
            return self._encode(example)
        except DataError as error:
            if example.where is None or str(error).startswith(example.where.file):
                raise
            raise type(error)(f"{example.where}: {error}") from None


def _here(number: int, cursor: Cursor[Any]) -> PoolStart:
    return PoolStart(number, cursor.position())


def generator(*seeds: int) -> np.random.Generator:
    """Random numbers of their own for each list of seeds."""
    return np.random.default_rng([seed % (1 << 64) for seed in seeds])
