"""Sources of examples. A source can be read any number of times, and from any position.

    source.shards()               files, or with `block` parts of files of about this size
    source.open(shard, position)  a cursor: an iterator that tracks its position

A source is a spec: plain values that describe the files and their format. Nothing is read before the first
iteration.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias, final

from typing_extensions import override

from ..errors import DataError
from ._bytes import is_packed, num_bytes
from ._example import Example, Item, data_error
from ._lines import LineReader, Place, places_every, places_of_lines

MAX_BLOCKS = 4096  # maximum number of blocks of a file

Paths: TypeAlias = str | Path | Sequence[str | Path]


class Position(NamedTuple):
    """The position of a reader: a location in each file of a shard, and a number of examples to skip from there."""

    places: tuple[Place, ...]
    num_passed: int = 0

    def to_data(self) -> list[Any]:
        """Convert to data for JSON."""
        return [[list(place) for place in self.places], self.num_passed]

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> "Position":
        """Read data that `to_data` wrote."""
        return cls(tuple(Place(*place) for place in data[0]), data[1])


class Shard(NamedTuple):
    """A part of a source: a file (or several parallel files), or a range of it."""

    files: tuple[str, ...]
    begin: Position
    ends: tuple[int | None, ...]


class Cursor(ABC, Iterator[Item]):
    """An iterator over examples that tracks its position."""

    @abstractmethod
    def position(self) -> Position:
        """Return the position of the next example."""

    @abstractmethod
    def number(self, example: Item) -> int:
        """Return a number that identifies the last example read within its shard."""


class Source(ABC):
    """An iterable of examples that can be read any number of times."""

    unit: ClassVar[str] = "line"  # the unit that the numbers of a cursor count

    @property
    def pool_size(self) -> int | None:
        """Maximum number of ids that a stream shuffles together; None for the default of the stream."""
        return None

    @abstractmethod
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        """Return the parts of the source, in order.

        Args:
            block: Approximate number of bytes of a shard. With `block`, plain files with one example per line are
                divided into ranges of this size; None makes one shard of each file.

        Returns:
            The shards. Their examples, one shard after the other, are all examples of the source.
        """

    @abstractmethod
    def open(self, shard: Shard, position: Position | None = None) -> Cursor[Example]:
        """Open a shard at its beginning, or at a position that was reached before.

        Args:
            shard: One of `shards()`.
            position: Position to start from, which a cursor of this shard has returned; None starts at the beginning.

        Returns:
            A cursor over the examples of the shard, from this position on.
        """

    def __iter__(self) -> Iterator[Example]:
        for shard in self.shards():
            yield from self.open(shard)


class FileSource(Source):
    """A source of text files. Each format converts lines to examples."""

    paths: tuple[str, ...]
    max_line: int
    is_by_line: ClassVar[bool]  # True if each line is an example, independent of the lines before

    def files(self) -> tuple[tuple[str, ...], ...]:
        """Return the files of each shard: by default one shard for each file."""
        return tuple((file,) for file in expand(self.paths))

    @abstractmethod
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        """Parse the lines of the files of one shard into examples."""

    @override
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        parts: list[Shard] = []
        for files in self.files():
            if block is None or not self.is_by_line:
                parts.append(_whole(files))
            else:
                parts += _ranges(files, block)
        return tuple(parts)

    @override
    def open(self, shard: Shard, position: Position | None = None) -> Cursor[Example]:
        position = position or shard.begin
        readers = [
            LineReader(file, place, end, max_line=self.max_line)
            for file, place, end in zip(shard.files, position.places, shard.ends, strict=True)
        ]
        cursor = _FileCursor(readers, self.examples(readers))
        for _ in islice(cursor, position.num_passed):
            pass
        return cursor


@final
class _FileCursor(Cursor[Example]):
    def __init__(self, readers: Sequence[LineReader], examples: Iterator[Example]) -> None:
        self._readers, self._examples = readers, examples

    @override
    def __iter__(self) -> Iterator[Example]:
        return self._examples  # iterate directly, without a call of __next__ for each example

    @override
    def __next__(self) -> Example:
        return next(self._examples)

    @override
    def position(self) -> Position:
        first = self._readers[0]
        if first.held is not None:
            return Position((first.held,), first.num_since)
        return Position(tuple(reader.place() for reader in self._readers))

    @override
    def number(self, example: Example) -> int:
        assert example.where is not None
        return example.where.line


@final
@dataclass(frozen=True, slots=True)
class InMemory(Source):
    """A source of examples in memory.

    Examples:
        >>> " ".join(example.source for example in InMemory((Example("a"), Example("b"))))
        'a b'
    """

    examples: tuple[Example, ...]

    @override
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        return (Shard((), Position(()), ()),)

    @override
    def open(self, shard: Shard, position: Position | None = None) -> Cursor[Example]:
        return _MemoryCursor(self.examples, position.num_passed if position else 0)


@final
class _MemoryCursor(Cursor[Example]):
    def __init__(self, examples: tuple[Example, ...], number: int) -> None:
        self._examples, self._number = examples, number

    @override
    def __next__(self) -> Example:
        if self._number >= len(self._examples):
            raise StopIteration
        self._number += 1
        return self._examples[self._number - 1]

    @override
    def position(self) -> Position:
        return Position((), self._number)

    @override
    def number(self, example: Example) -> int:
        return self._number - 1


def path_texts(paths: Paths) -> tuple[str, ...]:
    """Convert paths and patterns to the form that specs store."""
    return tuple(map(str, [paths] if isinstance(paths, str | Path) else paths))


def expand(patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the files that match paths and patterns such as `train-*.tsv.gz`, sorted by name."""
    if not patterns:
        raise DataError("a source needs at least one file, got none. Add the path of a file.")
    found: list[str] = []
    for pattern in patterns:
        if not any(sign in pattern for sign in "*?[") or Path(pattern).exists():
            found.append(pattern)
            continue
        parts = Path(pattern).parts
        fixed = next(n for n, part in enumerate(parts) if any(sign in part for sign in "*?["))
        matches = Path(*parts[:fixed]).glob(str(Path(*parts[fixed:])))
        files = sorted(str(path) for path in matches if path.is_file())
        if not files:
            raise data_error(
                pattern, "no file matches this pattern", "Check the folder, and correct the pattern"
            )
        found += files
    return tuple(found)


def _whole(files: tuple[str, ...]) -> Shard:
    return Shard(files, Position((Place(),) * len(files)), (None,) * len(files))


def _ranges(files: tuple[str, ...], block: int) -> list[Shard]:
    """Divide parallel files into ranges of lines."""
    first = places_every(files[0], max(block, num_bytes(files[0]) // MAX_BLOCKS))
    if len(first) == 1 or any(map(is_packed, files)):
        return [_whole(files)]
    lines = [place.line for place in first]
    places = [first, *(places_of_lines(file, lines) for file in files[1:])]
    if any(len(column) < len(lines) for column in places):
        return [_whole(files)]  # reading raises the error, which names the shorter file
    begins = [Position(row) for row in zip(*places, strict=True)]
    ends: list[tuple[int | None, ...]] = [
        *(tuple(place.offset for place in begin.places) for begin in begins[1:]),
        (None,) * len(files),
    ]
    return [Shard(files, begin, end) for begin, end in zip(begins, ends, strict=True)]
