"""Word alignment links of sentence pairs, and the file formats for them.

    0-0 1-2                                Pharaoh: word 0 with word 0, 1 with 2; counted from 0
    1-1 2p3                                sure and possible links (Och and Ney 2003); often from 1
    source <TAB> target <TAB> 0-0 1-2      pair and links on one line (XL-WA)
    source ||| target                      one pair on each line, its links in another file (fast_align)

A sure link belongs to every alignment; a possible link is optional. Sure links are also possible links. Words are
whitespace-separated, as in `split_words`.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

from ...errors import DataError
from .._example import Example, Where, data_error, quoted
from .._lines import LineReader

Link: TypeAlias = tuple[int, int]  # source word, target word

_BARS = "|||"
_LINK = re.compile(r"(\d{1,9})([-p?])(\d{1,9})").fullmatch


class Gold(NamedTuple):
    """The gold links of one pair, counted from 0."""

    sure: frozenset[Link]
    possible: frozenset[Link]  # including the sure links


class GoldFile(NamedTuple):
    """The gold links of every pair, and the number of the first word in the file."""

    gold: tuple[Gold, ...]
    reason: str


class _Line(NamedTuple):
    """The links of one line, counted as in the file."""

    where: Where
    sure: frozenset[Link]
    possible: frozenset[Link]


def read_gold(
    file: str, sizes: Sequence[tuple[int, int]], *, first: Literal[0, 1] | None = None
) -> GoldFile:
    """Read the links of a gold file. For each pair there is a line of `i-j` (sure) and `ipj` or `i?j` (possible),
    either without the pair or in the third column after the pair.

    Args:
        file: Plain, gzip or zstd.
        sizes: The number of source and target words of each pair.
        first: The number of the first word in the file. By default it is inferred: a 0 anywhere means 0; a number
            one too high for its text means 1; otherwise it is 0.

    Returns:
        The gold links of each pair, with words counted from 0, and the first number with the reason for it.

    Raises:
        DataError: A line has another form, a link lies outside its text, or the number of lines differs from the number
            of pairs.
    """
    lines = [_parsed(line, reader.where) for reader in (LineReader(file),) for line in reader]
    if len(lines) != len(sizes):
        raise DataError(
            f"{file}: {len(lines)} lines of links for {len(sizes)} pairs, expected equal numbers. Use "
            f"the gold file of these pairs, with an empty line for a pair without links."
        )
    first, reason = (first, "as specified") if first is not None else _first(lines, sizes)
    gold = tuple(_checked(*row, first) for row in zip(lines, sizes, strict=True))
    return GoldFile(gold, f"words counted from {first}, {reason}")


def read_fast_align(file: str) -> Iterator[Example] | None:
    """Read pairs from a file with `source ||| target` on each line; return None if the first line has another form."""
    reader = LineReader(file)
    lines = iter(reader)
    head = next(lines, "")
    if _BARS not in head:
        return None
    return (_pair(line, reader) for line in chain([head], lines))


def _pair(line: str, reader: LineReader) -> Example:
    source, bars, target = line.partition(_BARS)
    if not bars or _BARS in target:
        raise reader.error(
            f"expected one {_BARS} between source and target, got {quoted(line)}",
            "Write: source ||| target",
        )
    return Example(source.strip(" "), target.strip(" "), "", "", reader.where)


def _parsed(line: str, where: Where) -> _Line:
    cells = line.split("\t")
    if len(cells) == 2:
        raise data_error(
            where,
            "two columns, expected only links, or links in the third column",
            "Use the file with the links",
        )
    sure: set[Link] = set()
    possible: set[Link] = set()
    for word in cells[2 if len(cells) > 2 else 0].split():
        found = _LINK(word)
        if found is None:
            raise data_error(
                where,
                f"links must be pairs such as 0-2, or 0p2 for a possible link, got {quoted(word)}",
                "Write source-target positions, separated by spaces",
            )
        link = int(found[1]), int(found[3])
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return _Line(where, frozenset(sure), frozenset(possible))


def _first(lines: Sequence[_Line], sizes: Sequence[tuple[int, int]]) -> tuple[Literal[0, 1], str]:
    """Infer whether words are counted from 0 or 1, with a reason."""
    if any(0 in link for line in lines for link in line.possible):
        return 0, "because a link contains 0"
    for line, (num_sources, num_targets) in zip(lines, sizes, strict=True):
        if any(i == num_sources or j == num_targets for i, j in line.possible):
            return (
                1,
                f"because no link contains 0 and line {line.where.line} exceeds the text by one",
            )
    return 0, "the usual convention"


def _checked(line: _Line, size: tuple[int, int], first: int) -> Gold:
    """Return the links of a line counted from 0, after checking that they are within the pair."""
    sure, possible = (
        frozenset((i - first, j - first) for i, j in links) for links in (line.sure, line.possible)
    )
    for i, j in possible:
        if not (0 <= i < size[0] and 0 <= j < size[1]):
            raise data_error(
                line.where,
                f"got the link {i + first}-{j + first}, but the pair has {size[0]} source and "
                f"{size[1]} target words, counted from {first}",
                "Separate the words of the pairs by spaces, as the links count them",
            )
    return Gold(sure, possible)
