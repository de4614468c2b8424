"""Pools: a source read in order and encoded, in parts of bounded size.

A corpus that fits into one pool is read once and kept. A larger corpus is read again in every epoch, one pool at a
time: shards (blocks of plain files, whole compressed files) in a random order that depends on seed and epoch, examples
within a shard in the order of the file. A pool is identified by its start position and can be read again from there.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...errors import AudioError, DataError, ImageError
from .._bytes import num_bytes
from .._example import Example, Where
from .._source import Cursor, Position, Shard, Source
from ..images._pictures import num_places
from ._packed import Encoded, Packed, Packer
from ._prepared import PreparedCorpus

Encode: TypeAlias = Callable[[Example], Encoded | None]

POOL_SIZE = 1 << 22  # ids: 16 MB, about 150,000 words or 50,000 sentences
BLOCK = 1 << 18  # bytes of a plain file that are read in a row: a pool has a dozen of them
STRETCH = 4  # examples read in a row, before the consumer of the pool may do other work
_LINE_BITS = 40  # bits of an index for the line; the higher bits identify the shard


class PoolStart(NamedTuple):
    """The start of a pool: a shard in the order of the epoch, and a position in it."""

    shard: int = 0
    position: Position | None = None

    def to_data(self) -> list[Any]:
        """Convert to data for JSON."""
        return [self.shard, None if self.position is None else self.position.to_data()]

    @classmethod
    def from_data(cls, data: list[Any]) -> "PoolStart":
        """Read data that `to_data` wrote."""
        return cls(data[0], None if data[1] is None else Position.from_data(data[1]))


class Pool(NamedTuple):
    """Encoded examples, and the position at which they start."""

    packed: Packed
    start: PoolStart
    is_whole: bool  # True if the pool contains the whole corpus


class LeftOut(NamedTuple):
    """Examples that are in no batch: their number in this epoch and the first one, and the number of unreadable files
    with the error of the first one.
    """

    num: int = 0
    first: Where | None = None
    num_unreadable: int = 0
    why: str = ""

    def and_one(self, where: Where | None, why: str = "") -> "LeftOut":
        """Return the counts with one more example."""
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
        """The parts of the source, determined on first use."""
        return self._source.shards(block=BLOCK if self._shuffle else None)

    @property
    def num_examples(self) -> int | None:
        """Return the number of examples, if they are all in one pool that has been read."""
        return None if self._whole is None else len(self._whole.packed)

    def pools(self, epoch: int, start: PoolStart) -> Iterator[Pool | None]:
        """Yield the pools of an epoch from a start on. While a pool is being read, yield None after every few examples,
        which lets the caller spread reading over the batches of the previous pool.
        """
        if self._whole is not None:
            yield self._whole
            return
        self.left_out = LeftOut()
        for pool in self._read(epoch, start):
            if pool is not None and pool.is_whole:
                # Epochs read shards in different orders, but the kept pool must not depend on the order.
                canonical = pool.packed.take(np.argsort(pool.packed.indices, kind="stable"))
                self._whole = pool = pool._replace(packed=canonical)  # noqa: PLW2901 - in its place
            yield pool

    def where(self, index: int) -> Where:
        """Return the location of the example with an index."""
        files = self.shards[index >> _LINE_BITS].files
        number = index & ((1 << _LINE_BITS) - 1)
        return Where(files[0] if files else "memory", number, self._source.unit)

    @functools.cached_property
    def fingerprint(self) -> list[int]:
        """Return numbers that detect a changed corpus: the number of files, and their sizes."""
        files = {file for shard in self.shards for file in shard.files}
        return [len(files), sum(map(num_bytes, files))]

    def _read(self, epoch: int, start: PoolStart) -> Iterator[Pool | None]:
        """Yield each pool once enough examples for a batch follow it. Fewer examples at the end of an epoch go into
        the previous pool, because they cannot form a batch.
        """
        full: tuple[Packer, PoolStart] | None = None
        packer, begin = Packer(), start
        after: list[tuple[Encoded, int]] = []  # examples after a full pool, also in the packer
        num_read = 0
        for index, encoded, here in self._encoded_from(epoch, start):
            packer.append(encoded, index)
            if full is not None:
                after.append((encoded, index))
                if len(after) == self._min_rows:
                    yield Pool(full[0].packed(), full[1], is_whole=False)
                    full, after = None, []
            if full is None and packer.size >= self._size and len(packer) >= self._min_rows:
                full, packer, begin = (packer, begin), Packer(), here()
            num_read += 1
            if num_read == STRETCH:
                num_read = 0
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
        """Yield index, ids, and a function that returns the next position, for all examples from a start on."""
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
                # One bad file of thousands must not end a run.
                except (AudioError, ImageError) as error:
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
    """Create an independent random generator for each list of seeds."""
    return np.random.default_rng([seed % (1 << 64) for seed in seeds])
