"""What pages and notebooks of a chapter share: the Markdown of its quiz, its folded parts and its links."""

import re
from collections.abc import Sequence

from ._chapter import Question

_TO_DOCS = re.compile(r"\]\(\.\./docs/")
_TO_CHAPTER = re.compile(r"\]\((\d\d_\w+)\.md")


def folded(summary: str, text: str, *, attributes: str = "") -> str:
    """Return a part that opens on a click."""
    return f"<details{attributes}>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def quiz(questions: Sequence[Question], *, attributes: str = "") -> str:
    """Return the questions with options a, b, c, ... and folded answers."""
    parts = list[str]()
    for number, question in enumerate(questions, start=1):
        options = "\n".join(
            f"- {letter}) {option}"
            for letter, option in zip("abcdefgh", question.options, strict=False)
        )
        answer = folded("Answer", f"**{question.letter}** {question.reason}", attributes=attributes)
        parts.append(f"**{number}. {question.text}**\n\n{options}\n\n{answer}")
    return "\n\n".join(parts)


def code(text: str, language: str = "python") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def relinked(text: str, *, docs: str, ending: str) -> str:
    """Return Markdown with links to pages below `docs`, and to chapters with another ending."""
    return _TO_CHAPTER.sub(rf"](\1{ending}", _TO_DOCS.sub(f"]({docs}", text))
