"""Tables: tab-separated and comma-separated files, whose columns have numbers or names.

word,pron           a header: the columns have names
cat,k æ t           source="word", target="pron", or source=0, target=1
"""

import csv as standard_csv
import difflib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, TypeVar, final

from typing_extensions import override

from ...specs import setting
from .._example import BY_SETTING, Example, Where, data_error, quoted
from .._inputs import TextPair
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, expand, path_texts
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS

Column: TypeAlias = int | str | None

ROLES = ("source", "target", "second", "features", "alignment")
_MOST_NAMES = 12  # columns that an error lists


# The cells of one record, and the line where it begins. A table has millions of them: no named tuple, which takes
# longer than splitting the line.
Row: TypeAlias = tuple[Sequence[str], int]
_NO_ROW: Row = ((), 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class AbstractTable(FileSource):
    """Rows of columns. A column is given by its number, counted from 0, or by its name in the header. Spaces
    around cells are removed, and empty lines are skipped.
    """

    separator: ClassVar[str]  # in words, for errors

    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    source: int | str = setting(0, "column of the source text: a number or a name", at_least=0)
    target: Column = setting(1, "column of the target, a text or a label", at_least=0)
    second: Column = setting(None, "column of the second text of a pair", at_least=0)
    features: Column = setting(None, "column of features, as in inflection", at_least=0)
    alignment: Column = setting(None, "column of alignments such as 0-0 1-2", at_least=0)
    columns: int | None = setting(
        None,
        "required number of columns; none: at least the columns that are read",
        at_least=1,
    )
    header: bool = setting(
        False, "the first line contains column names; always true if a column is given by name"
    )
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @abstractmethod
    def rows(self, reader: LineReader) -> Iterator[Row]:
        """Yield the rows from the position of the reader."""

    @property
    def roles(self) -> dict[str, Column]:
        """Return the column of each part of an example; None for an unused part."""
        return {role: getattr(self, role) for role in ROLES}

    @property
    def is_named(self) -> bool:
        """True if a column is given by name."""
        return any(isinstance(column, str) for column in self.roles.values())

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        file, is_first = reader.file, reader.line == 0
        names: list[str] | None = None
        if self.is_named and not is_first:  # resumed in the middle of the file
            names = self.first_row(file)
        rows = self.rows(reader)
        if is_first and (self.header or self.is_named):
            names = _stripped(next(rows, _NO_ROW)[0])
        numbers = self.numbers(names or (), file)
        source, target, second, features, alignment = numbers.values()
        assert source is not None
        least = max(self.columns or 0, *(n + 1 for n in numbers.values() if n is not None))
        highest = self.columns or 1 << 30
        for cells, line in rows:
            if not least <= len(cells) <= highest:
                if not any(map(str.strip, cells)):
                    continue
                raise self._wrong_columns(Where(file, line), cells, least, names)
            text = cells[source].strip(" ")
            yield Example(
                text if second is None else TextPair(text, cells[second].strip(" ")),
                None if target is None else cells[target].strip(" "),
                "" if features is None else cells[features].strip(" "),
                "" if alignment is None else cells[alignment].strip(" "),
                Where(file, line),
            )

    def first_row(self, file: str) -> list[str]:
        """Return the cells of the first line of a file: its header, if it has one."""
        return _stripped(next(self.rows(LineReader(file, max_line=self.max_line)), _NO_ROW)[0])

    def numbers(self, names: Sequence[str], file: str) -> dict[str, int | None]:
        """Return the column number of each part of an example.

        Args:
            names: The header.
            file: The name of the file with this header, for the error message.

        Returns:
            For each part, the number of its column, or None if the table does not have it.
        """
        return {
            role: _number_of(column, names, file) if isinstance(column, str) else column
            for role, column in self.roles.items()
        }

    def _wrong_columns(
        self, where: Where, cells: Sequence[str], needed: int, names: Sequence[str] | None
    ) -> Exception:
        got, text = len(cells), quoted(self._line(cells))
        least = f"{needed}" if self.columns else f"at least {needed}"
        known = f" ({_listed(names)})" if names else ""
        return data_error(
            where,
            f"{got} column{'s' * (got != 1)}, expected {least}{known} separated by {self.separator}, in {text}",
            self._remedy(got, needed),
        )

    @abstractmethod
    def _line(self, cells: Sequence[str]) -> str:
        """Join cells as in a line of the file."""

    @abstractmethod
    def _remedy(self, got: int, needed: int) -> str:
        """Return advice for a row with the wrong number of columns."""


Table = TypeVar("Table", bound=AbstractTable)


def in_files(like: Table, other: Table) -> Table:
    """Return the table in other files, with the columns of this table.

    Columns are given by name in files whose first line has these names. In files without a header, they have the
    same numbers as in the files of the first table.

    Args:
        like: A table with known columns.
        other: Other files, opened without this knowledge.

    Returns:
        The other table, with the columns of the first.

    Raises:
        DataError: The other files have no header, and the files of the first table do not exist anymore.
    """
    if not like.is_named:
        return replace(other, **like.roles, columns=like.columns)
    if other.header or like.source in other.first_row(expand(other.paths)[0]):
        return replace(other, **like.roles, header=True)
    file = expand(like.paths)[0]
    if not Path(file).exists():
        raise data_error(
            Where(expand(other.paths)[0], 1),
            f"no header with the column {quoted(str(like.source))}, and the training file {file}, "
            f"which defines its position, does not exist",
            "Add a first line with the column names",
        )
    numbers = like.numbers(like.first_row(file), file)
    return replace(other, **numbers, columns=like.columns)


def without_target(table: Table, *, second: bool, features: bool) -> Table:
    """Return the table without the target, for prediction: only the columns that the model reads are required."""
    return replace(
        table,
        target=None,
        alignment=None,
        columns=None,
        second=table.second if second else None,
        features=table.features if features else None,
    )


_MORE = "or pass columns=None to allow more (with foveal fit: --set train.columns=none)"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TabSeparated(AbstractTable):
    """Tab-separated columns, one row on each line."""

    is_by_line: ClassVar[bool] = True
    separator: ClassVar[str] = "tabs"
    kind: Literal["tsv"] = "tsv"

    @override
    def rows(self, reader: LineReader) -> Iterator[Row]:
        for line in reader:
            if line.strip(" "):
                yield line.split("\t"), reader.line

    @override
    def _line(self, cells: Sequence[str]) -> str:
        return "\t".join(cells)

    @override
    def _remedy(self, got: int, needed: int) -> str:
        if got < needed:
            return f"Put a tab between columns, or set the columns to read{BY_SETTING}"
        return f"Remove the extra tab, {_MORE}"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CommaSeparated(AbstractTable):
    """Columns separated by commas or semicolons. A cell in double quotes may contain separators, line
    breaks and doubled quotes (RFC 4180). A cell has at most 131,072 characters.
    """

    is_by_line: ClassVar[bool] = False  # a quoted cell may span several lines
    separator: ClassVar[str] = "separators"
    kind: Literal["csv"] = "csv"
    delimiter: Literal[",", ";"] = setting(",", "character between columns")

    @override
    def rows(self, reader: LineReader) -> Iterator[Row]:
        texts = (f"{line}\n" for line in reader)
        parsed = standard_csv.reader(
            texts, delimiter=self.delimiter, skipinitialspace=True, strict=True
        )
        before = reader.line
        while True:
            try:
                cells = next(parsed, None)
            except standard_csv.Error as error:
                raise data_error(
                    Where(reader.file, before + 1),
                    f"invalid CSV: {error}, in the row that begins here",
                    'Write a cell that contains a quote, a separator or a line break as "...", and a quote '
                    'in it as ""',
                ) from None
            if cells is None:
                return
            if any(cell.strip() for cell in cells):
                yield cells, before + 1
            before = reader.line

    @override
    def _line(self, cells: Sequence[str]) -> str:
        return self.delimiter.join(cells)

    @override
    def _remedy(self, got: int, needed: int) -> str:
        if got < needed:
            return f"Write all cells, or set the columns to read{BY_SETTING}"
        return f'Put a cell that contains {self.delimiter!r} in double quotes ("a, b"), {_MORE}'


def tsv(
    paths: Paths,
    source: int | str = 0,
    target: Column = 1,
    features: Column = None,
    alignment: Column = None,
    *,
    second: Column = None,
    columns: int | None = None,
    header: bool = False,
    max_line: int = MAX_LINE,
) -> TabSeparated:
    """Read tab-separated files; see `TabSeparated`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        source: Column of the text to read: its number, counted from 0, or its name in the header.
        target: Column of the text or label to produce; None for data without targets.
        features: Column of the features, as in inflection.
        alignment: Column of the alignment, for example of `0-0 1-2`.
        second: Column of the second text, for pairs of texts.
        columns: Number of columns that each row must have; None requires only the columns that are read.
        header: Whether the first line of each file contains the names of the columns. A file whose columns are given by
            name always has such a line.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per row.

    Examples:
        >>> tsv("train.tsv", source="lemma", target="form", features="tags").is_named
        True
    """
    return TabSeparated(
        paths=path_texts(paths),
        source=source,
        target=target,
        second=second,
        features=features,
        alignment=alignment,
        columns=columns,
        header=header,
        max_line=max_line,
    )


def csv(
    paths: Paths,
    source: int | str = 0,
    target: Column = 1,
    features: Column = None,
    alignment: Column = None,
    *,
    second: Column = None,
    columns: int | None = None,
    header: bool = False,
    delimiter: Literal[",", ";"] = ",",
    max_line: int = MAX_LINE,
) -> CommaSeparated:
    """Read comma-separated files; see `CommaSeparated`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        source: Column of the text to read: its number, counted from 0, or its name in the header.
        target: Column of the text or label to produce; None for data without targets.
        features: Column of the features, as in inflection.
        alignment: Column of the alignment, for example of `0-0 1-2`.
        second: Column of the second text, for pairs of texts.
        columns: Number of columns that each row must have; None requires only the columns that are read.
        header: Whether the first row of each file contains the names of the columns. A file whose columns are given by
            name always has such a line.
        delimiter: Character between columns.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per row.

    Examples:
        >>> csv("train.csv", source="word", target="pron").delimiter
        ','
    """
    return CommaSeparated(
        paths=path_texts(paths),
        source=source,
        target=target,
        second=second,
        features=features,
        alignment=alignment,
        columns=columns,
        header=header,
        delimiter=delimiter,
        max_line=max_line,
    )


def _stripped(cells: Sequence[str]) -> list[str]:
    return [cell.strip() for cell in cells]


def _number_of(name: str, names: Sequence[str], file: str) -> int:
    """Return the number of the column with this name.

    Raises:
        DataError: No column has the name, or several columns have it.
    """
    if names.count(name) == 1:
        return names.index(name)
    near = difflib.get_close_matches(name, names, n=1)
    has = f"which has {_listed(names)}" if names else "which is empty"
    if name in names:
        what, remedy = f"several columns have the name {quoted(name)}", "Use its number, from 0"
    else:
        what = f"no column {quoted(name)} in the header, {has}"
        remedy = (
            f"Did you mean {quoted(near[0])}?" if near else "Use one of these names, or a number"
        )
    raise data_error(Where(file, 1), what, remedy)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(quoted, names[:_MOST_NAMES]))
    return shown + ", ..." * (len(names) > _MOST_NAMES)
