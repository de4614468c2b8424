"""Example: what one line, or one record, of a file says, before any symbol has a number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ..errors import DataError

Item = TypeVar("Item")

# How to do so on the command line, after "say which columns to read".
BY_SETTING = ": source=0, target=2 (with foveal fit: --set train.source=0 --set train.target=2)"
MAX_SHOWN = 40  # characters of a file's text that an error quotes


class Where(NamedTuple):
    """The place of an example: a file and the number of its first line, from 1 on; or of whatever
    else the file is made of.
    """

    file: str
    line: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.line}"


@dataclass(frozen=True, slots=True)
class Example:
    """A text, and what should be made of it.

    Args:
        source: the text that is read; of a pair of texts both, with a tab between them, and of a
            document or a story each sentence on a line of its own; the path of an image or a clip.
        target: the text, label or tags to produce; None where nobody knows.
        features: symbols that say which form is wanted, as in inflection: `V;PST`.
        alignment: pairs `i-j`, from 0 on: target symbol j comes from source symbol i.
        where: the place that it was read from.
    """

    source: str
    target: str | None = None
    features: str = ""
    alignment: str = ""
    where: Where | None = None


def evenly_spaced(items: Sequence[Item], most: int) -> list[Item]:
    """So many of the items at most, in their order.

    >>> "".join(evenly_spaced("abcde", 2))
    'ac'
    """
    size = min(most, len(items))
    return [items[n * len(items) // size] for n in range(size)]


def data_error(where: Where | str | None, what: str, remedy: str) -> DataError:
    """The one line that a user sees: file and line, what is wrong, and what to do."""
    place = f"{where}: " if where is not None else ""
    return DataError(f"{place}{what}. {remedy}")


def quoted(text: str) -> str:
    r"""The text on one line, not too long: what an error shows of a file.

    >>> print(quoted("two\tcolumns"))
    'two\tcolumns'
    """
    short = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    return repr(short)


def read_pair(example: Example) -> tuple[str, str]:
    r"""The two texts of an example that is a pair.

    >>> read_pair(Example("It rains.\tIt is wet.", "entailment"))
    ('It rains.', 'It is wet.')
    """
    first, tab, second = example.source.partition("\t")
    if not tab:
        raise data_error(
            example.where,
            f"one text, expected two, in {quoted(example.source)}",
            "Put a tab between the texts, or say which column has the second: second=1 (with foveal fit: --set "
            "train.second=1)",
        )
    return first, second


def read_alignment(example: Example) -> list[int]:
    """The pairs of an example's alignment in one row: i, j, i, j, ...

    >>> read_alignment(Example("a b", "x y", alignment="0-1 1-0"))
    [0, 1, 1, 0]
    """
    numbers: list[int] = []
    for pair in example.alignment.split():
        source, dash, target = pair.partition("-")
        if not (dash and source.isdecimal() and target.isdecimal()):
            raise data_error(
                example.where,
                f"an alignment is made of pairs such as 0-2, got {quoted(pair)}",
                "Write source-target places, from 0 on, with spaces between the pairs",
            )
        numbers += [int(source), int(target)]
    return numbers
