"""Dependency trees in CoNLL-U: one word on each line, with its head and the label of the arc.

    # sent_id = 1
    1-2   don't   _    _     _    _   _   _       _   _         a token of two words
    1     do      do   AUX   VBP  _   3   aux     _   _
    ...
    3.1   (said)  ...                                           an empty node, of enhanced graphs

The words of a tree have integer numbers. Lines of multi-word tokens, empty nodes and comments belong to the sentence
but not to its tree: `treebank` skips them, and `fill_trees` keeps them.

Reference: https://universaldependencies.org/format.html.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal, NamedTuple, final

from typing_extensions import override

from ...errors import DataError
from ...specs import setting
from .._example import Example, Where, data_error, quoted
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, path_texts
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS

_FORM, _UPOS, _XPOS, _HEAD, _LABEL = 1, 3, 4, 6, 7  # columns, counted from 0
_NUM_COLUMNS = 10
_NOTHING = "_"
_AT_ONCE = 1024  # sentences: enough to fill batches of similar length
_NO_WORD = re.compile(r"\d+[-.]\d+")  # 3-4, a token of two words; 5.1, an empty node
_SPACE = re.compile(r"\s")


def read_arc(text: str) -> tuple[int, str]:
    """Parse the head of a word and the label of its arc.

    Args:
        text: An arc, for example `3:nsubj`.

    Returns:
        The number of the head, 0 for the root, and the label.

    Raises:
        DataError: The text has another form.

    Examples:
        >>> read_arc("3:nsubj:pass")
        (3, 'nsubj:pass')
    """
    head, colon, label = text.partition(":")
    if not (colon and label and head.isascii() and head.isdecimal()):
        raise DataError(
            f"an arc must be a head and a label such as 3:nsubj, got {quoted(text)}. Write the number "
            f"of the head (0 for the root), a colon and the label for each word, separated by spaces."
        )
    return int(head), label


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Treebank(FileSource):
    """Sentences and their dependency trees; see `treebank`."""

    is_by_line: ClassVar[bool] = False
    kind: Literal["treebank"] = "treebank"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        rows: list[list[str]] = []
        first = reader.line + 1
        for line in reader:
            if not line.strip():
                if rows:
                    yield _example(rows, Where(reader.file, first))
                rows, first = [], reader.line + 1
            elif (row := _word(line, reader.where, len(rows) + 1)) is not None:
                rows.append(row)
        if rows:
            yield _example(rows, Where(reader.file, first))


def treebank(paths: Paths, *, max_line: int = MAX_LINE) -> Treebank:
    """Read dependency trees in CoNLL-U files, the data of `ParsingSpec`.

    The source of an example contains the words with spaces between them; a space inside a word becomes a
    no-break space. The target contains an arc for each word, `2:nsubj 0:root`, and is None if the file has no
    heads. The features contain the parts of speech of each word, `PRON|PRP VERB|VBP`, which a parser may
    learn to predict and never reads.

    Args:
        paths: CoNLL-U files, or patterns; plain, gzip or zstd.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per sentence.
    """
    return Treebank(paths=path_texts(paths), max_line=max_line)


def fill_trees(
    lines: Iterable[str], parse: Callable[[list[str]], Sequence[str]], file: str = "input"
) -> Iterator[str]:
    r"""Yield CoNLL-U lines with heads and labels filled in; everything else is unchanged.

    Args:
        lines: Lines without line breaks.
        parse: Returns the arcs of each sentence, in the form of the targets of `treebank`. A sentence is a text of
            space-separated words.
        file: The name of the file for error messages.

    Yields:
        The lines, in order.

    Examples:
        >>> sentence = "1\tHello\t_\t_\t_\t_\t_\t_\t_\t_"
        >>> filled = fill_trees((sentence, ""), lambda sentences: ("0:root",) * len(sentences))
        >>> next(filled).replace("\t", " ")
        '1 Hello _ _ _ _ 0 root _ _'
    """
    blocks = _blocks(lines, file)
    while some := list(islice(blocks, _AT_ONCE)):
        texts = [_text(block.rows) for block in some if block.rows]
        found = iter(parse(texts) if texts else ())
        for block in some:
            yield from block.filled(next(found) if block.rows else "")


class _Block(NamedTuple):
    """The lines of a sentence up to the empty line, and the columns of its words."""

    lines: list[str]
    places: list[int]  # the indices of the words among the lines
    rows: list[list[str]]

    def filled(self, arcs: str) -> list[str]:
        """Return the lines with these heads and labels."""
        lines = list(self.lines)
        for place, row, arc in zip(self.places, self.rows, arcs.split(), strict=True):
            head, label = read_arc(arc)
            lines[place] = "\t".join([*row[:_HEAD], str(head), label, *row[_LABEL + 1 :]])
        return lines


def _blocks(lines: Iterable[str], file: str) -> Iterator[_Block]:
    block = _Block([], [], [])
    for number, line in enumerate(lines, start=1):
        if line.strip():
            row = _word(line, Where(file, number), len(block.rows) + 1)
            if row is not None:
                block.places.append(len(block.lines))
                block.rows.append(row)
        block.lines.append(line)
        if not line.strip():
            yield block
            block = _Block([], [], [])
    if block.lines:
        yield block


def _word(line: str, where: Where, number: int) -> list[str] | None:
    """Return the columns of the word with this number; None for comments and lines without a word."""
    if line.startswith("#"):
        return None
    row = line.split("\t")
    if len(row) != _NUM_COLUMNS:
        raise data_error(
            where,
            f"{len(row)} columns, expected {_NUM_COLUMNS} separated by tabs, in {quoted(line)}",
            "Write CoNLL-U, with _ in columns that have no value",
        )
    if _NO_WORD.fullmatch(row[0]):
        return None
    if row[0] != str(number):
        raise data_error(
            where,
            f"expected word {number} of the sentence, got the number {quoted(row[0])}",
            "Number the words of each sentence from 1, and put an empty line after each sentence",
        )
    if not row[_FORM].strip():
        raise data_error(where, "the word is empty", "Write _ if it has no form")
    return row


def _text(rows: Sequence[Sequence[str]]) -> str:
    return " ".join(_SPACE.sub("\N{NO-BREAK SPACE}", row[_FORM].strip()) for row in rows)


def _example(rows: Sequence[Sequence[str]], where: Where) -> Example:
    target = None
    if all(row[_HEAD] != _NOTHING for row in rows):
        target = " ".join(f"{row[_HEAD]}:{row[_LABEL]}" for row in rows)
    tags = " ".join(_SPACE.sub("", f"{row[_UPOS]}|{row[_XPOS]}") for row in rows)
    return Example(_text(rows), target, tags, "", where)
