"""bAbI: stories, questions about them, answers, and the facts that support each answer.

    1 Mary moved to the bathroom.
    2 John went to the hallway.
    3 Where is Mary?      bathroom    1

Reference: Weston et al. 2015, Towards AI-complete question answering.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from typing_extensions import override

from ...specs import setting
from .._example import Example, quoted
from .._inputs import Facts
from .._lines import MAX_LINE, LineReader
from .._source import FileSource, Paths, path_texts
from ._formats import ABOUT_MAX_LINE, ABOUT_PATHS


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Babi(FileSource):
    """Questions about the facts of a story so far. The source is `Facts`, the answer is the target, and the
    alignment has `i-0` for each fact i, counted from 0, that supports the answer.
    """

    is_by_line: ClassVar[bool] = False
    kind: Literal["babi"] = "babi"
    paths: tuple[str, ...] = setting(about=ABOUT_PATHS)
    max_line: int = setting(MAX_LINE, ABOUT_MAX_LINE, at_least=1)

    @override
    def examples(self, readers: Sequence[LineReader]) -> Iterator[Example]:
        (reader,) = readers
        facts: list[str] = []
        places: dict[str, int] = {}  # line number in the story -> index of the fact
        last = 0
        for line in reader:
            if not line.strip():
                continue
            number, _, text = line.partition(" ")
            if number == "1":
                facts, places, last = [], {}, 0
                reader.hold()
            last += 1
            if number != str(last):
                raise reader.error(
                    f"expected the number {last}{' or 1' * (last > 1)} and a space before the "
                    f"text, got {quoted(line)}",
                    "Number the lines of a story from 1",
                )
            if "\t" not in text:
                places[number] = len(facts)
                facts.append(text.strip())
                continue
            question, answer, support = _question(text, reader)
            alignment = " ".join(f"{_fact(name, places, reader)}-0" for name in support.split())
            reader.num_since += 1
            yield Example(Facts(tuple(facts), question), answer, "", alignment, reader.where)


def babi(paths: Paths, *, max_line: int = MAX_LINE) -> Babi:
    """Read files of the bAbI tasks; see `Babi`.

    Args:
        paths: Files, or patterns; plain, gzip or zstd.
        max_line: Maximum number of bytes of a line.

    Returns:
        A source with one example per question.
    """
    return Babi(paths=path_texts(paths), max_line=max_line)


def _question(text: str, reader: LineReader) -> tuple[str, str, str]:
    cells = [cell.strip() for cell in text.split("\t")]
    if not 2 <= len(cells) <= 3 or not cells[1]:
        raise reader.error(
            f"expected question, answer and supporting facts, separated by tabs, got {quoted(text)}",
            "Write for example: 3 Where is Mary?<TAB>bathroom<TAB>1",
        )
    return cells[0], cells[1], cells[2] if len(cells) == 3 else ""


def _fact(name: str, places: dict[str, int], reader: LineReader) -> int:
    if name not in places:
        raise reader.error(
            f"the supporting fact is line {quoted(name)}, expected the number of an earlier fact",
            "Correct the number",
        )
    return places[name]
