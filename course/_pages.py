"""A page of the site for each chapter, with the outputs of its full run, and an overview of all chapters."""

import json
from collections.abc import Iterator, Sequence

from ._chapter import Block, Chapter, Role, chapters, read_chapter
from ._markdown import code, folded, quiz, relinked
from ._running import Output
from ._stored import TIMES, stored

_MARKDOWN_INSIDE = ' markdown="1"'
PREDICTION = "Predict the result, then open it"


def page(chapter: Chapter, outputs: Sequence[Output]) -> str:
    """Return the Markdown of a page. Its drawings are `pictures/NAME_NUMBER.svg` next to it."""
    parts = [f"# {chapter.title}", _note(chapter)]
    numbers = {id(block): number for number, block in enumerate(chapter.blocks)}
    for part in chapter.parts:
        match part:
            case Block():
                number = numbers[id(part)]
                parts += _block(part, outputs[number], f"pictures/{chapter.name}_{number}.svg")
            case tuple():
                parts.append(quiz(part, attributes=_MARKDOWN_INSIDE))
            case _:
                parts.append(part)
    return relinked("\n\n".join(parts), docs="../", ending=".md") + "\n"


def drawings(chapter: Chapter, outputs: Sequence[Output]) -> dict[str, str]:
    """Return the drawings of a chapter by file name."""
    return {
        f"{chapter.name}_{number}.svg": output.svg
        for number, output in enumerate(outputs)
        if output.svg
    }


def site_files() -> Iterator[tuple[str, str]]:
    """Yield the path in the site and the content of every page and drawing of the course.

    Raises:
        FileNotFoundError: A chapter has no outputs, or outputs of other code.
    """
    for path in chapters():
        chapter = read_chapter(path)
        outputs = stored(chapter)
        if outputs is None:
            raise FileNotFoundError(
                f"results/course/{chapter.name}.json is missing or outdated. "
                f"Run python -m course run {chapter.name[:2]}."
            )
        yield f"course/{chapter.name}.md", page(chapter, outputs)
        for name, drawing in drawings(chapter, outputs).items():
            yield f"course/pictures/{name}", drawing


def overview() -> str:
    """Return the table of all chapters, with the seconds that each one took."""
    rows = json.loads(TIMES.read_text(encoding="utf-8"))["rows"]
    seconds = {row["name"][:2]: row["value"] for row in rows}
    lines = ["| chapter | question | seconds |", "|---|---|---:|"]
    for path in chapters():
        chapter = read_chapter(path)
        lines.append(
            f"| [{chapter.title}]({chapter.name}.md) | {chapter.first_question} | "
            f"{seconds[chapter.name[:2]]:.0f} |"
        )
    return "\n".join(lines)


def _note(chapter: Chapter) -> str:
    return (
        f"*This page is also a notebook: `course/notebooks/{chapter.name}.ipynb` in the repository. "
        "The outputs are those of a run of all blocks, from top to bottom.*"
    )


def _block(block: Block, output: Output, picture: str) -> Iterator[str]:
    if block.role is Role.SOLUTION:
        yield folded("Solution", code(block.shown), attributes=_MARKDOWN_INSIDE)
        return
    yield code(block.shown)
    shown = list[str]()
    if output.text.strip():
        shown.append(code(output.text, "text"))
    if output.svg:
        shown.append(
            f'<figure markdown="1">\n![{block.caption}]({picture})\n\n'
            f'<figcaption markdown="1">{block.caption}</figcaption>\n</figure>'
        )
    if block.role is Role.PREDICT and shown:
        yield folded(PREDICTION, "\n\n".join(shown), attributes=_MARKDOWN_INSIDE)
    else:
        yield from shown
