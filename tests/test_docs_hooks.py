"""Markers of pages: parts that appear once they were scored, and sampled text."""

import json
import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"), meta={})
SCORED = "before\n<!-- scored: some{} -->\nshown\n<!-- end scored -->\nafter\n"
SAMPLED = {
    "characters_lstm": [
        {"temperature": 0.3, "text": "ROMEO:\n\nthe *the* <b>"},
        {"temperature": 1.0, "text": "| Exeunt"},
    ],
    "subwords_transformer": [{"temperature": 0.3, "text": "KING"}],
}


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """Return the hooks, with an empty folder as their repository."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    found = import_module("docs_hooks")
    monkeypatch.setattr(found, "ROOT", tmp_path)
    (tmp_path / "results/texts").mkdir(parents=True)
    yield found
    for name in [name for name in sys.modules if name.startswith("docs_")]:
        sys.modules.pop(name)


def test_sampled_text_is_shown_by_case_and_temperature(hooks: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results/texts/some.json"
    path.write_text(json.dumps(SAMPLED), encoding="utf-8")
    assert hooks.on_page_markdown("<!-- texts: some -->\n", page=PAGE) == (
        "characters, lstm, temperature 0.3:\n\n"
        "```text\nROMEO:\n\nthe *the* <b>\n```\n\n"
        "characters, lstm, temperature 1:\n\n"
        "```text\n| Exeunt\n```\n\n"
        "subwords, transformer, temperature 0.3:\n\n"
        "```text\nKING\n```\n"
    )


def test_missing_text_is_a_warning(hooks: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        said = hooks.on_page_markdown("<!-- texts: some -->\n", page=PAGE)
    assert said == "*No text of some has been sampled.*\n"
    assert "page.md asks for results/texts/some.json" in caplog.text


@pytest.mark.parametrize(
    ("rows", "beginning", "is_shown"),
    [
        (None, "", False),
        (["sgd, flat: BLEU"], "", True),
        (["sgd, flat: BLEU"], "; sgd", True),
        (["film, flat: BLEU"], "; sgd", False),
    ],
)
def test_a_part_appears_once_its_rows_exist(
    rows: list[str] | None, beginning: str, is_shown: bool, hooks: ModuleType, tmp_path: Path
) -> None:
    if rows is not None:
        found = {"rows": [{"name": name} for name in rows]}
        (tmp_path / "results/some.json").write_text(json.dumps(found), encoding="utf-8")
    said = hooks.on_page_markdown(SCORED.format(beginning), page=PAGE)
    assert said.split() == (["before", "shown", "after"] if is_shown else ["before", "after"])


def test_tables_of_exports_have_every_model_and_engine(
    hooks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "ROOT", ROOT)
    tables = {
        name: hooks.on_page_markdown(f"<!-- exporting: {name} -->\n", page=PAGE)
        for name in ("answers", "storage", "runtimes", "speed", "start")
    }
    rows = {name: table.split("\n\n")[0].splitlines() for name, table in tables.items()}
    lengths = {name: len(lines) for name, lines in rows.items()}
    # Two lines are the head; a model has three rows in `storage`.
    assert lengths == {"answers": 9, "storage": 23, "runtimes": 9, "speed": 6, "start": 4}
    content = json.loads((ROOT / "results/exporting.json").read_text())
    values = {row["name"]: row["value"] for row in content["rows"]}
    ratio = values["ice, beam 5, batch 1: ONNX Runtime over torch"]
    (line,) = (line for line in rows["speed"] if line.startswith("| beam 5, batch 1 "))
    assert f"({ratio:.1f} x)" in line
    assert "Made by `python -m benchmarks.exporting`" in tables["start"]
