"""A notebook for each chapter, without outputs, in the format nbformat 4.5."""

import json
from typing import Any

from ._chapter import FOLDER, Block, Chapter, Role
from ._markdown import code, folded, quiz, relinked

NOTEBOOKS = FOLDER / "notebooks"


def notebook(chapter: Chapter) -> str:
    """Return the JSON of a notebook.

    Checks fail until the reader has solved the exercise, so these cells have Jupyter's tag `raises-exception`: "Run all"
    continues after them.
    """
    cells = list[dict[str, Any]]()
    head = (
        f"# {chapter.title}\n\n*Made from `course/{chapter.name}.md`. This notebook needs "
        f"[Foveal](../docs/install.md) with the extra `toolkit`, and no network.*"
    )
    for part in (head, *chapter.parts):
        match part:
            case Block(role=Role.SOLUTION):
                _add_markdown(cells, folded("Solution", code(part.shown)))
            case Block():
                tags = ["raises-exception"] if part.role in (Role.EXERCISE, Role.CHECK) else []
                _add_code(cells, part.shown, tags)
                if part.caption:
                    _add_markdown(cells, f"*{part.caption}*")
            case tuple():
                _add_markdown(cells, quiz(part))
            case _:
                _add_markdown(cells, part)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _add_markdown(cells: list[dict[str, Any]], text: str) -> None:
    text = relinked(text, docs="../../docs/", ending=".ipynb")
    cells.append(
        {
            "cell_type": "markdown",
            "id": f"cell-{len(cells)}",
            "metadata": {},
            "source": _lines(text),
        }
    )


def _add_code(cells: list[dict[str, Any]], text: str, tags: list[str]) -> None:
    cells.append(
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{len(cells)}",
            "metadata": {"tags": tags} if tags else {},
            "outputs": [],
            "source": _lines(text.rstrip()),
        }
    )


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
