"""CoNLL-U and similar formats: one word on each line, and an empty line after each sentence.

    # text = comments are skipped
    1    They    they    PRON    ...
    2    buy     buy     VERB    ...

Reference: https://universaldependencies.org/format.html.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from typing_extensions import override

from ...specs import setting
from .._example import BY_SETTING, Example, Where, quoted
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, path_texts
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS

_NO_WORD = re.compile(r"\d+[-.]\d+")  # 3-4, a token of several words; 5.1, an empty node
_SPACE = re.compile(r"\s")


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ConllU(FileSource):
    """Sentences and their tags, each from one column. A space inside a word becomes a no-break space. With
    `source=0, target=1` it reads files of words and tags, for example for named entities.
    """

    is_by_line: ClassVar[bool] = False
    kind: Literal["conllu"] = "conllu"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    source: int = setting(1, "column of the words, from 0", at_least=0)
    target: int | None = setting(3, "column of the tags, from 0", at_least=0)
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        needed = max(self.source, self.target or 0) + 1
        words: list[str] = []
        tags: list[str] = []
        first = reader.line + 1
        for line in reader:
            if not line.strip():
                if words:
                    yield self._example(words, tags, Where(reader.file, first))
                words, tags, first = [], [], reader.line + 1
                continue
            cells = line.split("\t")
            if len(cells) == 1 and line.startswith("#"):
                continue
            if len(cells) < needed:
                raise reader.error(
                    f"{len(cells)} columns, expected at least {needed} separated by tabs, in {quoted(line)}",
                    f"Put tabs between the columns, or set the columns to read{BY_SETTING}",
                )
            if self.source > 0 and _NO_WORD.fullmatch(cells[0]):
                continue
            self._add(words, cells[self.source], reader)
            self._add(tags, "_" if self.target is None else cells[self.target], reader)
        if words:
            yield self._example(words, tags, Where(reader.file, first))

    def _add(self, column: list[str], cell: str, reader: LineReader) -> None:
        if not cell.strip():
            raise reader.error("a word or its tag is empty", "Write _ for a missing value")
        column.append(_SPACE.sub("\N{NO-BREAK SPACE}", cell.strip()))

    def _example(self, words: list[str], tags: list[str], where: Where) -> Example:
        target = None if self.target is None else " ".join(tags)
        return Example(" ".join(words), target, "", "", where)


def conllu(
    paths: Paths, source: int = 1, target: int | None = 3, *, max_line: int = MAX_LINE
) -> ConllU:
    """Read CoNLL-U files; see `ConllU`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        source: Column of the words, counted from 0.
        target: Column of the tags; None reads words only.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per sentence.
    """
    return ConllU(paths=path_texts(paths), source=source, target=target, max_line=max_line)
