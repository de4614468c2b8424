"""Formats with one example on each line: JSON, parallel files, plain text."""

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar, Literal, final

from typing_extensions import override

from ...specs import setting
from .._example import Example, Where, data_error, quoted
from .._inputs import TextPair
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, expand, path_texts

ABOUT_PATHS = "files, or patterns such as train-*.tsv.gz; plain, gzip or zstd"
ABOUT_MAX_LINE = "maximum length of a line in bytes; a longer line is an error"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class JsonLines(FileSource):
    """A JSON object on each line. A value is a text, a number, true or false, or a list of texts, which are joined
    with spaces.
    """

    is_by_line: ClassVar[bool] = True
    kind: Literal["json_lines"] = "json_lines"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    source: str = setting("source", "name of the source field")
    target: str | None = setting("target", "name of the target field, a text or a label")
    second: str | None = setting(None, "name of the field with the second text of a pair")
    features: str | None = setting(None, "name of the field with features, as in inflection")
    alignment: str | None = setting(None, "name of the field with the alignment, such as 0-0 1-2")
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        for line in reader:
            if not line.strip():
                continue
            record = parse_record(line, reader.where)
            text = self._text(record, self.source, reader)
            yield Example(
                text
                if self.second is None
                else TextPair(text, self._text(record, self.second, reader)),
                None if self.target is None else self._text(record, self.target, reader),
                "" if self.features is None else self._text(record, self.features, reader),
                "" if self.alignment is None else self._text(record, self.alignment, reader),
                reader.where,
            )

    def _text(self, record: dict[str, Any], name: str, reader: LineReader) -> str:
        if name not in record:
            near = difflib.get_close_matches(name, record, n=1)
            known = ", ".join(map(quoted, list(record)[:8])) or "none"
            remedy = f"Did you mean {quoted(near[0])}?" if near else "Set the names to read"
            raise reader.error(f"no {quoted(name)} in the object, which has {known}", remedy)
        value = record[name]
        text = value_text(value)
        if text is None:
            raise reader.error(
                f"{quoted(name)} must be text, a number or a list of texts, "
                f"got {quoted(json.dumps(value))}",
                "Write it as text",
            )
        if not _is_writable(text):
            raise reader.error(
                f"{quoted(name)} has half of a surrogate pair, which is not a character",
                "Write the character itself, or both halves",
            )
        return text


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Parallel(FileSource):
    """Two parallel files, or two lists of parallel files: line i of one corresponds to line i of the other."""

    is_by_line: ClassVar[bool] = True
    kind: Literal["parallel"] = "parallel"
    source_paths: tuple[str, ...] = setting(about=f"source texts: {ABOUT_PATHS}")
    target_paths: tuple[str, ...] = setting(about=f"target texts: {ABOUT_PATHS}")
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def files(self) -> tuple[tuple[str, ...], ...]:
        sources, targets = expand(self.source_paths), expand(self.target_paths)
        if len(sources) != len(targets):
            raise data_error(
                sources[0],
                f"{len(sources)} source and {len(targets)} target files, expected equal numbers",
                "Pass one target file per source file, in the same order",
            )
        return tuple(zip(sources, targets, strict=True))

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        ours, theirs = readers
        for source, target in zip_longest(ours, theirs):
            if source is None or target is None:
                short, long = (ours, theirs) if source is None else (theirs, ours)
                raise short.error(
                    f"the file ends here, but {long.file} has a line {long.line}; expected equal "
                    f"numbers of lines",
                    "Check for a missing line or an extra line break",
                )
            yield Example(source.strip(" "), target.strip(" "), "", "", ours.where)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PlainLines(FileSource):
    """Plain text: each line is a source without a target. Empty lines count."""

    is_by_line: ClassVar[bool] = True
    kind: Literal["lines"] = "lines"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        for line in reader:
            yield Example(line, None, "", "", Where(reader.file, reader.line))


def json_lines(
    paths: Paths,
    source: str = "source",
    target: str | None = "target",
    features: str | None = None,
    alignment: str | None = None,
    *,
    second: str | None = None,
    max_line: int = MAX_LINE,
) -> JsonLines:
    """Read files of JSON objects; see `JsonLines`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        source: Name of the value to read.
        target: Name of the text or label to produce; None for data without targets.
        features: Name of the features, as in inflection.
        alignment: Name of the alignment, for example of `0-0 1-2`.
        second: Name of the second text, for pairs of texts.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per line.
    """
    return JsonLines(
        paths=path_texts(paths),
        source=source,
        target=target,
        second=second,
        features=features,
        alignment=alignment,
        max_line=max_line,
    )


def parallel(source_paths: Paths, target_paths: Paths, *, max_line: int = MAX_LINE) -> Parallel:
    """Read parallel files; see `Parallel`.

    Args:
        source_paths: Files of the texts to read, or patterns; plain, gzip or zstd.
        target_paths: Files of the texts to produce, one for each source file and in the same order.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per pair of lines.
    """
    return Parallel(
        source_paths=path_texts(source_paths),
        target_paths=path_texts(target_paths),
        max_line=max_line,
    )


def lines(paths: Paths, *, max_line: int = MAX_LINE) -> PlainLines:
    """Read plain text; see `PlainLines`."""
    return PlainLines(paths=path_texts(paths), max_line=max_line)


def parse_record(line: str, where: Where) -> dict[str, Any]:
    """Parse the JSON object of a line."""
    try:
        record = json.loads(line)
    except RecursionError:
        raise data_error(where, "the JSON is nested too deeply", "Write a flat object") from None
    except json.JSONDecodeError as error:
        what = f"invalid JSON at character {error.pos + 1}: {error.msg}"
        raise data_error(where, what, "Correct the line") from None
    except ValueError as error:  # a number with thousands of digits
        raise data_error(where, f"invalid JSON: {error}", "Correct the line") from None
    if not isinstance(record, dict):
        raise data_error(
            where,
            f"expected a JSON object, got {quoted(line)}",
            'Write {"source": ..., "target": ...} on the line',
        )
    return record


def value_text(value: Any) -> str | None:
    """Return the text of a value; a list of texts is joined with spaces. Return None for other values."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None


def _is_writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
