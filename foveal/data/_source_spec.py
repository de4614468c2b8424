"""User-defined sources: anything that yields examples.

    read()   every example, always in the same order

A resumed run calls `read` again and skips the examples that it has already read.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import ClassVar, final

from typing_extensions import override

from ..specs import AbstractSpec
from ._example import Example, Where
from ._source import Cursor, Position, Shard, Source


class AbstractSourceSpec(AbstractSpec, Source):
    """A source of examples. Derive from it to read your format, your database or your generator.

    Examples:
        >>> from dataclasses import dataclass
        >>> from typing import Literal
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Squares(AbstractSourceSpec):
        ...     kind: Literal["squares"] = "squares"
        ...     size: int = 3
        ...
        ...     def read(self):
        ...         for number in range(self.size):
        ...             yield Example(str(number), str(number**2))
        >>> " ".join(example.target for example in Squares())
        '0 1 4'
    """

    unit: ClassVar[str] = "example"

    @abstractmethod
    def read(self) -> Iterator[Example]:
        """Yield every example. Each call starts with the first example and yields the same examples in the same
        order, in every training process.

        Yields:
            Every example, in a fixed order.
        """

    def files(self) -> tuple[str, ...]:
        """Return the files that the examples come from. A run is not resumed if their contents have changed. For a
        source without files, the settings are compared instead.

        Returns:
            The names of the files; empty by default.
        """
        return ()

    @override
    def shards(self, block: int | None = None) -> tuple[Shard, ...]:
        return (Shard(self.files(), Position(()), ()),)

    @override
    def open(self, shard: Shard, position: Position | None = None) -> Cursor[Example]:
        place = shard.files[0] if shard.files else self.kind
        return _CountingCursor(self.read(), place, position.num_passed if position else 0)


@final
class _CountingCursor(Cursor[Example]):
    """A cursor whose position is the number of examples read."""

    def __init__(self, examples: Iterator[Example], place: str, num_passed: int) -> None:
        self._examples = islice(examples, num_passed, None)
        self._place, self._number = place, num_passed

    @override
    def __next__(self) -> Example:
        example = next(self._examples)
        self._number += 1
        if example.where is not None:
            return example
        return replace(example, where=Where(self._place, self._number, AbstractSourceSpec.unit))

    @override
    def position(self) -> Position:
        return Position((), self._number)

    @override
    def number(self, example: Example) -> int:
        return self._number
