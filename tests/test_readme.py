"""The Python blocks of README.md and of the pages in docs/ run; blocks of a page share names."""

import re
import warnings
from pathlib import Path

import pytest

from benchmarks.supar import load_supar

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program(text: str) -> str:
    """The blocks of a page as one program in which each line keeps its line number."""
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        for offset, line in enumerate(block[1].splitlines()):
            lines[first + offset] = line
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_blocks_run(page: Path) -> None:
    if page.stem == "supar":  # its structures alone, without the parsers around them
        load_supar()
    code = compile(program(page.read_text(encoding="utf-8")), str(page), "exec")
    with warnings.catch_warnings():
        if page.parent.name == "migration":  # the other libraries warn of themselves
            warnings.simplefilter("ignore")
        exec(code, {"__name__": page.stem})


def test_the_readme_has_code_blocks() -> None:
    assert BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))
