"""The Python blocks of README.md and of the pages in docs/ run; blocks of a page share names."""

import re
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.supar import load_supar

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\(([^)#:]+)[^):]*\)|src="([^"]+)"')


def program(text: str) -> str:
    """Join the blocks of a page into one program in which each line keeps its line number."""
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        for offset, line in enumerate(block[1].splitlines()):
            lines[first + offset] = line
    return "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_blocks_run(page: Path) -> None:
    if page.stem == "supar":  # only its structures, without the parsers
        load_supar()
    code = compile(program(page.read_text(encoding="utf-8")), str(page), "exec")
    with warnings.catch_warnings():
        if page.parent.name == "migration":  # the other libraries raise warnings
            warnings.simplefilter("ignore")
        exec(code, {"__name__": page.stem})


def test_each_snippet_is_a_short_program_of_its_own() -> None:
    blocks = BLOCK.findall((ROOT / "docs/snippets.md").read_text(encoding="utf-8"))
    assert len(blocks) == 6
    for block in blocks:
        assert sum(map(bool, block.splitlines())) <= 15
        exec(compile(block, "docs/snippets.md", "exec"), {"__name__": "snippet"})


def test_the_readme_prints_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    text = README.read_text(encoding="utf-8")
    exec(compile(program(text), str(README), "exec"), {"__name__": "README"})
    assert BLOCK.search(text)
    assert capsys.readouterr().out == "".join(OUTPUT.findall(text))


def test_the_files_that_the_readme_links_to_exist() -> None:
    linked = [a or b for a, b in LINK.findall(README.read_text(encoding="utf-8"))]
    assert len(linked) > 30
    assert [path for path in linked if not (ROOT / path).is_file()] == []


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("readme_tables")
    for name in ("readme_tables", "docs_views", "stored_files"):
        sys.modules.pop(name, None)


def test_the_readme_has_the_figures_of_the_results(tables: ModuleType) -> None:
    assert import_module("stored_files").outdated(tables.contents()) == []


def test_another_figure_makes_the_readme_outdated(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = README.read_text(encoding="utf-8")
    load = tables.load
    monkeypatch.setattr(
        tables, "load", lambda name: {key: 1 + load(name)[key] for key in load(name)}
    )
    assert tables.filled(text) != text
