"""Example: one line or record of a file, before tokens are converted to ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ..errors import DataError
from ._inputs import AbstractInput, Input, quoted as quoted, unfit

Item = TypeVar("Item")
Kind = TypeVar("Kind", bound=AbstractInput)

# Advice for the command line, which follows "say which columns to read".
BY_SETTING = ": source=0, target=2 (with foveal fit: --set train.source=0 --set train.target=2)"


class Where(NamedTuple):
    """The location of an example: a file and the number of its first line, counted from 1. Files without lines have
    another `unit`.
    """

    file: str
    line: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.line}"


@dataclass(frozen=True, slots=True)
class Example:
    """An input, and the output to produce from it.

    Args:
        source: The input: a text, or one of the other types of inputs, such as `TextPair` and `Picture`.
        target: The text, label or tags to produce; None if unknown.
        features: Tokens that specify the requested form, as in inflection: `V;PST`.
        alignment: Pairs `i-j`, counted from 0: target token j is aligned with source token i.
        where: The file and line of the example.
    """

    source: Input
    target: str | None = None
    features: str = ""
    alignment: str = ""
    where: Where | None = None

    @property
    def text(self) -> str:
        """The source, which must be a text.

        Raises:
            DataError: The source is another type of input.
        """
        if isinstance(self.source, str):
            return self.source
        raise self._located(unfit("a text", self.source))

    def input_as(self, kind: type[Kind]) -> Kind:
        r"""Return the source as one type of input; parse it if it is a text in the written form of that type.

        Args:
            kind: Class of the requested input, for example `TextPair`.

        Returns:
            The source as an instance of `kind`.

        Raises:
            DataError: The source is another type of input, or a text that cannot be parsed.

        Examples:
            >>> from foveal.data import TextPair
            >>> Example("It rains.\tIt is wet.", "entailment").input_as(TextPair).second
            'It is wet.'
        """
        if isinstance(self.source, kind):
            return self.source
        try:
            return kind.of(self.source)
        except DataError as error:
            raise self._located(error) from None

    def _located(self, error: DataError) -> DataError:
        return error if self.where is None else DataError(f"{self.where}: {error}")


def evenly_spaced(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most `most` items, evenly spaced and in their order.

    Args:
        items: Items to choose from.
        most: Maximum number of items.

    Returns:
        The first item and items at equal distances after it.

    Examples:
        >>> "".join(evenly_spaced("abcde", 2))
        'ac'
    """
    size = min(most, len(items))
    return [items[n * len(items) // size] for n in range(size)]


def data_error(where: Where | str | None, what: str, remedy: str) -> DataError:
    """Create an error with a one-line message: file and line, the problem, and advice."""
    place = f"{where}: " if where is not None else ""
    return DataError(f"{place}{what}. {remedy}")


def read_alignment(example: Example) -> list[int]:
    """Parse the alignment of an example into a flat list: i, j, i, j, ...

    Args:
        example: Example whose alignment has the form `0-1 1-0`.

    Returns:
        Source and target positions, counted from 0, in turn. The list is empty if the example has no alignment.

    Raises:
        DataError: A pair has another form.

    Examples:
        >>> read_alignment(Example("a b", "x y", alignment="0-1 1-0"))
        [0, 1, 1, 0]
    """
    numbers: list[int] = []
    for pair in example.alignment.split():
        source, dash, target = pair.partition("-")
        if not (dash and source.isdecimal() and target.isdecimal()):
            raise data_error(
                example.where,
                f"an alignment must consist of pairs such as 0-2, got {quoted(pair)}",
                "Write source-target positions, counted from 0 and separated by spaces",
            )
        numbers += [int(source), int(target)]
    return numbers
