"""A chapter is one Markdown file: text, code that runs from top to bottom, exercises with checks, and a quiz.

    ```python            runs; the chapters share nothing, the blocks of a chapter share their names
    ```python predict    the same, but the page hides the output until the reader has made a prediction
    ```python exercise   what the reader begins with
    ```python check      assertions that fail for the exercise and hold for the solution
    ```python solution   hidden on the page and in the notebook
    ```text, ```console  do not run

A line `steps = 400  # reduced: 20` has the first value for readers and the second one in a reduced run. The paragraph
`Figure: ...` after a block is the caption of its drawing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

FOLDER = Path(__file__).resolve().parent
_BLOCK = re.compile(
    r"^```python *(?P<role>[a-z]*)\n(?P<code>.*?)^```$(?:\n\nFigure: (?P<caption>.+?)(?=\n\n|\Z))?",
    re.MULTILINE | re.DOTALL,
)
_REDUCED = re.compile(
    r"^(?P<start>\s*\w+ = )(?P<full>.+?)  # reduced: (?P<reduced>.+)$", re.MULTILINE
)
_QUESTION = re.compile(
    r"^\d\. (?P<text>.+(?:\n {3}\S.*)*)\n\n"
    r"(?P<options>(?: {4}- \[[ x]\] .+\n(?: {6}.+\n)*)+)\n"
    r" {4}Answer: (?P<reason>.+(?:\n {4}\S.*)*)$",
    re.MULTILINE,
)
_OPTION = re.compile(r"^ {4}- \[(?P<mark>[ x])\] (?P<text>.+(?:\n {6}.+)*)$", re.MULTILINE)


class ChapterError(ValueError):
    """A chapter does not have the form of a chapter."""


class Role(StrEnum):
    """What a block of code is for."""

    CODE = ""
    PREDICT = "predict"
    EXERCISE = "exercise"
    CHECK = "check"
    SOLUTION = "solution"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code, with the caption of its drawing if it makes one."""

    role: Role
    code: str  # as in the file
    caption: str

    @property
    def shown(self) -> str:
        """The code for readers."""
        return _REDUCED.sub(r"\g<start>\g<full>", self.code)

    @property
    def reduced(self) -> str:
        """The code of a reduced run."""
        return _REDUCED.sub(r"\g<start>\g<reduced>", self.code)


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the quiz with its options, of which one is right, and the reason."""

    text: str
    options: tuple[str, ...]
    right: int
    reason: str

    @property
    def letter(self) -> str:
        """The letter of the right option."""
        return "abcdefgh"[self.right]


Part: TypeAlias = str | Block | tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """The parts of a chapter in order: Markdown, blocks of code, and one quiz."""

    path: Path
    title: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """The name of the file without its ending, such as 06_attention."""
        return self.path.stem

    @property
    def blocks(self) -> list[Block]:
        """All blocks of code."""
        return [part for part in self.parts if isinstance(part, Block)]

    @property
    def questions(self) -> Sequence[Question]:
        """The questions of the quiz."""
        return next((part for part in self.parts if isinstance(part, tuple)), ())

    @property
    def first_question(self) -> str:
        """The first sentence of the text that ends in a question mark."""
        sentences = re.split(r"(?<=[.?!])\s+", " ".join(self.text.split()))
        return next((each for each in sentences if each.endswith("?")), "")

    @property
    def text(self) -> str:
        """All Markdown between the blocks."""
        return "\n\n".join(part for part in self.parts if isinstance(part, str))


def chapters() -> list[Path]:
    """Return the files of all chapters, in order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.md"))


def read_chapter(path: Path) -> Chapter:
    """Read a chapter.

    Raises:
        ChapterError: The file has no title, or a block has an unknown role.
    """
    text = path.read_text(encoding="utf-8")
    if not text.startswith("# "):
        raise ChapterError(f"{path.name}: expected a title in the first line, got {text[:20]!r}.")
    title, _, body = text[2:].partition("\n")
    return Chapter(path, title.strip(), tuple(_parts(path, body)))


def _parts(path: Path, body: str) -> Iterator[Part]:
    end = 0
    for match in _BLOCK.finditer(body):
        yield from _prose(body[end : match.start()])
        if match["role"] not in set(Role):
            raise ChapterError(
                f"{path.name}: a block is `python {match['role']}`; "
                f"expected {', '.join(role for role in Role if role)} or nothing after `python`."
            )
        caption = " ".join((match["caption"] or "").split())
        yield Block(Role(match["role"]), match["code"], caption)
        end = match.end()
    yield from _prose(body[end:])


def _prose(text: str) -> Iterator[Part]:
    """Yield the Markdown before the quiz, the quiz, and the Markdown after it."""
    found = list(_QUESTION.finditer(text))
    if not found:
        if text.strip():
            yield text.strip()
        return
    yield text[: found[0].start()].strip()
    yield tuple(_question(match) for match in found)
    if rest := text[found[-1].end() :].strip():
        yield rest


def _question(match: re.Match[str]) -> Question:
    options = list(_OPTION.finditer(match["options"]))
    marked = [number for number, option in enumerate(options) if option["mark"] == "x"]
    if len(marked) != 1:
        raise ChapterError(
            f"{match['text'][:40]!r}: expected one option with [x], got {len(marked)}."
        )
    texts = tuple(" ".join(option["text"].split()) for option in options)
    reason = " ".join(match["reason"].split())
    return Question(" ".join(match["text"].split()), texts, marked[0], reason)
