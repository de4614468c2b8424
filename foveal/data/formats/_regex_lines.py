"""Lines that match a regular expression, for files in none of the usual formats.

IN: jump twice OUT: JUMP JUMP       IN: (?P<source>.*) OUT: (?P<target>.*)
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from typing_extensions import override

from ...errors import SpecError
from ...specs import setting
from .._example import Example, quoted
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, path_texts
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS

_GROUPS = frozenset({"source", "target", "features", "alignment"})


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class RegexLines(FileSource):
    """Lines that match a whole pattern. Its named groups are the parts of an example: `source`, and optionally
    `target`, `features` and `alignment`. Empty lines are skipped.
    """

    is_by_line: ClassVar[bool] = True
    kind: Literal["regex_lines"] = "regex_lines"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    pattern: str = setting(about="regular expression of a line, with groups such as (?P<source>.*)")
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    def __post_init__(self) -> None:
        try:
            names = set(re.compile(self.pattern).groupindex)
        except re.error as error:
            raise SpecError(
                f"RegexLines: invalid regular expression: {error}, in {quoted(self.pattern)}. For "
                f"example, use (?P<source>.*) => (?P<target>.*)."
            ) from None
        if "source" not in names or not names <= _GROUPS:
            known, got = ", ".join(sorted(_GROUPS)), ", ".join(sorted(names)) or "none"
            raise SpecError(
                f"RegexLines: the names of groups must be among {known} and include source, got {got} "
                f"in {quoted(self.pattern)}. For example, use (?P<source>.*) => (?P<target>.*)."
            )

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        parts_of = re.compile(self.pattern).fullmatch
        for line in reader:
            if not line.strip():
                continue
            found = parts_of(line)
            if found is None:
                raise reader.error(
                    f"expected a line like {quoted(self.pattern)}, got {quoted(line)}",
                    "Correct the line, or the pattern",
                )
            parts = {name: (part or "").strip(" ") for name, part in found.groupdict().items()}
            yield Example(
                parts["source"],
                parts.get("target"),
                parts.get("features", ""),
                parts.get("alignment", ""),
                reader.where,
            )


def regex_lines(paths: Paths, pattern: str, *, max_line: int = MAX_LINE) -> RegexLines:
    """Read files whose lines match a pattern; see `RegexLines`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        pattern: Regular expression of a whole line, with groups such as `(?P<source>.*)`.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per line.

    Raises:
        SpecError: The pattern is invalid, has no group `source`, or has a group with another name.
    """
    return RegexLines(paths=path_texts(paths), pattern=pattern, max_line=max_line)
