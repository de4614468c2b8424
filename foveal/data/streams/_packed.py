"""Encoded examples in compact arrays: rows of different lengths, one after another.

    values    4 5 6 | 7 | 8 9        all ids in a row, 4 bytes each
    starts    0       3   4
    lengths   3       1   2

A batch takes rows by number, which copies no ids, and pads them in one step of numpy; no object is
made for each example. Pictures, where examples have them, are kept beside the rows.

Axes: B rows, n places of the longest row.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import final, overload

import numpy as np
from jaxtyping import Bool, Int, UInt8
from torch import Tensor
from typing_extensions import override

from ...errors import ShapeError
from ..images._pictures import PictureColumn, Pictures

MAX_NEW = 1 << 12  # examples
ROW_SIZE = 10  # what the places of a row cost beside its ids, in ids of 4 bytes
PICTURE_BYTES = 128  # that count as one id, so that a pool of 16 MB of ids may have 512 MB of them


@final
@dataclass(frozen=True, slots=True)
class Encoded:
    """An example as numbers: what `encode` of a task makes of an `Example`.

    `alignment` has pairs in one row, source place and target place by turns. `picture` is an image,
    or the frames of a clip.
    """

    source: Sequence[int]
    target: Sequence[int] = ()
    features: Sequence[int] = ()
    alignment: Sequence[int] = ()
    index: int = 0
    picture: UInt8[Tensor, "*F C h w"] | None = field(default=None, compare=False)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Ragged:
    """Rows of ids of different lengths."""

    values: Int[np.ndarray, " N"]
    starts: Int[np.ndarray, " B"]
    lengths: Int[np.ndarray, " B"]

    def take(self, rows: Int[np.ndarray, " b"]) -> "Ragged":
        """Some of the rows, in this order."""
        return Ragged(self.values, self.starts[rows], self.lengths[rows])

    def padded(self, *, extra: int = 0) -> Int[np.ndarray, "B n"]:
        """The rows on top of each other, with 0 after their ends, and `extra` columns of 0."""
        width = int(self.lengths.max(initial=0)) + extra
        columns = np.arange(width, dtype=np.int32)
        if not len(self.values):
            return np.zeros((len(self.lengths), width), dtype=np.int64)
        ids = self.values.take(self.starts[:, None] + columns, mode="clip")
        return np.where(columns < self.lengths[:, None], ids, 0).astype(np.int64)

    def mask(self, *, extra: int = 0) -> Bool[np.ndarray, "B n"]:
        """True on the ids of each row, and on `extra` places after them."""
        width = int(self.lengths.max(initial=0)) + extra
        return np.arange(width, dtype=np.int32) < (self.lengths + extra)[:, None]

    def joined(self) -> Int[np.ndarray, " M"]:
        """The rows one after another."""
        before = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        places = np.repeat(self.starts - before, self.lengths) + np.arange(self.lengths.sum())
        return self.values[places]

    def row(self, number: int) -> Int[np.ndarray, " n"]:
        """One row."""
        start = self.starts[number]
        return self.values[start : start + self.lengths[number]]

    def __len__(self) -> int:
        return len(self.lengths)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Packed(Sequence[Encoded]):
    """Encoded examples in arrays; also a sequence of `Encoded`, for who wants them one by one."""

    source: Ragged
    target: Ragged
    features: Ragged
    alignment: Ragged
    indices: Int[np.ndarray, " B"]
    pictures: Pictures | None = None

    @classmethod
    def pack(cls, examples: Iterable[Encoded]) -> "Packed":
        """The examples in arrays."""
        if isinstance(examples, Packed):
            return examples
        packer = Packer()
        for example in examples:
            packer.append(example, example.index)
        return packer.packed()

    def take(self, rows: Int[np.ndarray, " b"]) -> "Packed":
        """Some of the examples, in this order."""
        return Packed(
            self.source.take(rows),
            self.target.take(rows),
            self.features.take(rows),
            self.alignment.take(rows),
            self.indices[rows],
            None if self.pictures is None else self.pictures.take(rows),
        )

    @override
    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> Encoded: ...
    @overload
    def __getitem__(self, index: slice) -> "Packed": ...
    @override
    def __getitem__(self, index: int | slice) -> "Encoded | Packed":
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        number = range(len(self))[index]
        return Encoded(
            self.source.row(number).tolist(),
            self.target.row(number).tolist(),
            self.features.row(number).tolist(),
            self.alignment.row(number).tolist(),
            int(self.indices[number]),
            None if self.pictures is None else self.pictures[number],
        )

    @override
    def __iter__(self) -> Iterator[Encoded]:
        return (self[number] for number in range(len(self)))


class Packer:
    """Grows by one example at a time; a few thousand at once become arrays."""

    def __init__(self) -> None:
        self.size = 0  # in ids
        self._new: list[Encoded] = []
        self._indices = array("q")
        self._source, self._target = _Column(), _Column()
        self._features, self._alignment = _Column(), _Column()
        self._pictures = PictureColumn()

    def append(self, example: Encoded, index: int) -> None:
        """Add an example."""
        self._indices.append(index)
        self.size += (
            len(example.source)
            + len(example.target)
            + len(example.features)
            + len(example.alignment)
            + ROW_SIZE
        )
        has_picture = example.picture is not None
        if example.picture is not None:
            self.size += self._pictures.append(example.picture) // PICTURE_BYTES
        if len(self._pictures) not in (0, len(self._indices)):
            raise ShapeError(
                f"Packed: either all examples have a picture or none, got {len(self._pictures)} "
                f"pictures for {len(self._indices)} examples. Give every Encoded a picture."
            )
        self._new.append(replace(example, picture=None) if has_picture else example)
        if len(self._new) >= MAX_NEW:
            self._keep()

    def __len__(self) -> int:
        return len(self._indices)

    def packed(self) -> Packed:
        """The arrays."""
        self._keep()
        return Packed(
            self._source.ragged(),
            self._target.ragged(),
            self._features.ragged(),
            self._alignment.ragged(),
            np.array(self._indices, dtype=np.int64),
            self._pictures.pictures(),
        )

    def _keep(self) -> None:
        self._source.extend([example.source for example in self._new])
        self._target.extend([example.target for example in self._new])
        self._features.extend([example.features for example in self._new])
        self._alignment.extend([example.alignment for example in self._new])
        self._new = []


class _Column:
    """The rows of one field."""

    def __init__(self) -> None:
        self._lengths: list[Int[np.ndarray, " n"]] = []
        self._values: list[Int[np.ndarray, " m"]] = []

    def extend(self, rows: list[Sequence[int]]) -> None:
        lengths = np.fromiter(map(len, rows), dtype=np.int32, count=len(rows))
        self._lengths.append(lengths)
        ids = chain.from_iterable(rows)
        self._values.append(np.fromiter(ids, dtype=np.int32, count=int(lengths.sum())))

    def ragged(self) -> Ragged:
        values, lengths = np.concatenate(self._values), np.concatenate(self._lengths)
        if not len(values):  # a field that no example has takes no room
            nothing = np.broadcast_to(np.int32(0), lengths.shape)
            return Ragged(values, nothing, nothing)
        starts = np.zeros_like(lengths)
        np.cumsum(lengths[:-1], out=starts[1:])
        return Ragged(values, starts, lengths)
