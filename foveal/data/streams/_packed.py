"""Encoded examples in compact arrays: rows of different lengths, one after another.

    values    4 5 6 | 7 | 8 9        all ids in a row, 4 bytes each
    starts    0       3   4
    lengths   3       1   2

A batch selects rows by index, which copies no ids, and pads them in one numpy operation, without an object for each
example. Images, if examples have them, are stored next to the rows.

Axes: B rows, n positions of the longest row.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final, overload

import numpy as np
from jaxtyping import Bool, Int, UInt8
from torch import Tensor
from typing_extensions import override

from ...errors import ShapeError
from ..images._pictures import PictureColumn, Pictures

# Columns that are parallel to the source or target, or contain pairs of positions.
UNCOUNTED = frozenset({"alignment", "features", "spelling"})
ROW_SIZE = 10  # overhead of a row in addition to its ids, in ids of 4 bytes
PICTURE_BYTES = 128  # bytes that count as one id: a pool of 16 MB of ids may have 512 MB of images


@final
class Encoded:
    """An example as ids, which the `encode` of a task makes from an `Example`: named columns of ids, of any lengths.

    `alignment` contains pairs in one row, alternating source and target positions. Batches of limited size count
    the positions of all columns except `alignment`, `features` and `spelling`.

    Args:
        source: Ids of the input.
        target: Ids of the output.
        index: Index of the example.
        picture: Image, or the frames of a clip.
        **columns: Ids of further parts of the input and output, by name.

    Examples:
        >>> pair = Encoded([4, 5], second=[6, 7, 8], target=[0])
        >>> pair["second"], pair["features"], pair.num_positions
        ([6, 7, 8], (), 6)
    """

    __slots__ = ("columns", "index", "picture")

    def __init__(
        self,
        source: Sequence[int] = (),
        target: Sequence[int] = (),
        *,
        index: int = 0,
        picture: UInt8[Tensor, "*F C h w"] | None = None,
        **columns: Sequence[int],
    ) -> None:
        self.columns: dict[str, Sequence[int]] = {"source": source, "target": target, **columns}
        self.index, self.picture = index, picture

    def __getitem__(self, name: str) -> Sequence[int]:
        return self.columns.get(name, ())

    @property
    def source(self) -> Sequence[int]:
        """The ids of the input."""
        return self.columns["source"]

    @property
    def target(self) -> Sequence[int]:
        """The ids of the output."""
        return self.columns["target"]

    @property
    def num_positions(self) -> int:
        """Number of positions that count in a batch of limited size."""
        number = 0
        for (
            name,
            column,
        ) in self.columns.items():  # sum takes as long as the rest of reading an example
            if name not in UNCOUNTED:
                number += len(column)
        return number

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoded):
            return NotImplemented
        return self.index == other.index and self._filled() == other._filled()

    @override
    def __hash__(self) -> int:
        raise TypeError("an Encoded holds lists, which have no hash")

    @override
    def __repr__(self) -> str:
        columns = ", ".join(f"{name}={column}" for name, column in self._filled().items())
        return f"Encoded({columns}, index={self.index})"

    def _filled(self) -> dict[str, list[int]]:
        """Return the columns that are not empty."""
        return {name: list(column) for name, column in self.columns.items() if len(column)}


@final
@dataclass(frozen=True, eq=False, slots=True)
class Ragged:
    """Rows of ids of different lengths."""

    values: Int[np.ndarray, " N"]
    starts: Int[np.ndarray, " B"]
    lengths: Int[np.ndarray, " B"]

    def take(self, rows: Int[np.ndarray, " b"]) -> "Ragged":
        """Return some of the rows, in this order."""
        return Ragged(self.values, self.starts[rows], self.lengths[rows])

    def padded(self, *, extra: int = 0) -> Int[np.ndarray, "B n"]:
        """Return the rows as a matrix, padded with 0, and with `extra` more columns of 0."""
        width = int(self.lengths.max(initial=0)) + extra
        columns = np.arange(width, dtype=np.int32)
        if not len(self.values):
            return np.zeros((len(self.lengths), width), dtype=np.int64)
        ids = self.values.take(self.starts[:, None] + columns, mode="clip")
        return np.where(columns < self.lengths[:, None], ids, 0).astype(np.int64)

    def mask(self, *, extra: int = 0) -> Bool[np.ndarray, "B n"]:
        """Return a mask that is True on the ids of each row, and on `extra` positions after them."""
        width = int(self.lengths.max(initial=0)) + extra
        return np.arange(width, dtype=np.int32) < (self.lengths + extra)[:, None]

    def joined(self) -> Int[np.ndarray, " M"]:
        """Return the concatenated rows."""
        before = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        places = np.repeat(self.starts - before, self.lengths) + np.arange(self.lengths.sum())
        return self.values[places]

    def row(self, number: int) -> Int[np.ndarray, " n"]:
        """Return one row."""
        start = self.starts[number]
        return self.values[start : start + self.lengths[number]]

    def __len__(self) -> int:
        return len(self.lengths)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Packed(Sequence[Encoded]):
    """Encoded examples in arrays; also a sequence of `Encoded`, for code that reads single examples."""

    columns: Mapping[str, Ragged]
    indices: Int[np.ndarray, " B"]
    pictures: Pictures | None = None

    @classmethod
    def pack(cls, examples: Iterable[Encoded]) -> "Packed":
        """Pack examples into arrays."""
        if isinstance(examples, Packed):
            return examples
        packer = Packer()
        for example in examples:
            packer.append(example, example.index)
        return packer.packed()

    def column(self, name: str) -> Ragged:
        """Return the rows of a column; they are empty if no example has it."""
        found = self.columns.get(name)
        return _empty(len(self)) if found is None else found

    @property
    def source(self) -> Ragged:
        """The rows of the input."""
        return self.column("source")

    @property
    def target(self) -> Ragged:
        """The rows of the output."""
        return self.column("target")

    @property
    def other_lengths(self) -> Int[np.ndarray, " B"]:
        """Return the number of positions of each example that count in a batch of limited size, without the source."""
        total = np.zeros(len(self), dtype=np.int32)
        for name, rows in self.columns.items():
            if name != "source" and name not in UNCOUNTED:
                total = total + rows.lengths
        return total

    def take(self, rows: Int[np.ndarray, " b"]) -> "Packed":
        """Return some of the examples, in this order."""
        return Packed(
            {name: column.take(rows) for name, column in self.columns.items()},
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
            index=int(self.indices[number]),
            picture=None if self.pictures is None else self.pictures[number],
            **{name: rows.row(number).tolist() for name, rows in self.columns.items()},
        )

    @override
    def __iter__(self) -> Iterator[Encoded]:
        return (self[number] for number in range(len(self)))


class Packer:
    """Collects examples one at a time, as numbers: an object for each example that waits would make the garbage
    collector walk over all objects of the process again and again.
    """

    def __init__(self) -> None:
        self.size = 0  # in ids
        self._indices = array("q")
        self._columns: dict[str, _Column] = {}
        self._pictures = PictureColumn()

    def append(self, example: Encoded, index: int) -> None:
        """Add an example."""
        self.size += ROW_SIZE
        for name, ids in example.columns.items():
            if name not in self._columns:
                self._columns[name] = _Column()
            if len(ids):
                self.size += len(ids)
                self._columns[name].append(ids, len(self._indices))
        self._indices.append(index)
        if example.picture is not None:
            self.size += self._pictures.append(example.picture) // PICTURE_BYTES
        if len(self._pictures) not in (0, len(self._indices)):
            raise ShapeError(
                f"Packed: expected an image for all examples or for none, got {len(self._pictures)} "
                f"images for {len(self._indices)} examples. Give every Encoded an image."
            )

    def __len__(self) -> int:
        return len(self._indices)

    def packed(self) -> Packed:
        """Return the arrays."""
        return Packed(
            {name: column.ragged(len(self)) for name, column in self._columns.items()},
            np.array(self._indices, dtype=np.int64),
            self._pictures.pictures(),
        )


class _Column:
    """The rows of one column. Rows without ids are only counted, when a later row has ids."""

    def __init__(self) -> None:
        self._values, self._lengths = array("i"), array("i")

    def append(self, row: Sequence[int], number: int) -> None:
        """Add the row with a number; the rows before it that were not added are empty."""
        if number > len(self._lengths):
            self._fill(number)
        self._lengths.append(len(row))
        self._values.extend(row)

    def ragged(self, num_rows: int) -> Ragged:
        self._fill(num_rows)
        if not self._values:  # a column without ids takes no memory
            return _empty(num_rows)
        values, lengths = (
            np.array(numbers, dtype=np.int32) for numbers in (self._values, self._lengths)
        )
        starts = np.zeros_like(lengths)
        np.cumsum(lengths[:-1], out=starts[1:])
        return Ragged(values, starts, lengths)

    def _fill(self, num_rows: int) -> None:
        self._lengths.extend(array("i", [0]) * (num_rows - len(self._lengths)))


def _empty(num_rows: int) -> Ragged:
    nothing = np.broadcast_to(np.int32(0), (num_rows,))
    return Ragged(np.zeros(0, dtype=np.int32), nothing, nothing)
