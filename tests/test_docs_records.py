"""The tables of docs/records match results/, and every error and every example on a page has its
picture.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.records._catalogue import RECORDS
from benchmarks.records._scoring import write_references
from benchmarks.results import Results

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT / "scripts"))
    scored_only = import_module("docs_scored").scored_only
PAGES = "\n".join(
    scored_only(path.read_text(encoding="utf-8"), ROOT / "results")
    for path in sorted((ROOT / "docs/records").glob("*.md"))
)
SHOWN, WITH_MISTAKES = (
    re.findall(rf"^<!-- {part}: (\w+) -->$", PAGES, re.MULTILINE) for part in ("record", "mistakes")
)
PARTS = re.findall(r"^<!-- record: (\w+)((?:; [^;>]+)+) -->$", PAGES, re.MULTILINE)
PICTURED = re.findall(r"^<!-- shown: (\w+) (\w+) -->$", PAGES, re.MULTILINE)


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("docs_records")
    sys.modules.pop("docs_records", None)


def table(text: str) -> dict[str, dict[str, str]]:
    """Return the cells of a Markdown table by row and column."""
    head, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    names = [cell.strip() for cell in head.split("|")[2:-1]]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    return {first.strip("*"): dict(zip(names, rest, strict=True)) for first, *rest in cells}


@pytest.mark.parametrize("recipe", SHOWN)
def test_a_record_is_its_results(recipe: str, records: ModuleType) -> None:
    shown = table(records.record(recipe))
    results = Results.load(ROOT / f"results/{recipe}.json")
    for row in results.rows:
        case, _, figure = row.name.partition(": ")
        said = float(shown[case].pop(figure).split()[0].rstrip(",").replace(",", ""))
        assert said == pytest.approx(row.value, abs=0.51 if row.value >= 100 else 0.051)
    assert all(cell == "" for cells in shown.values() for cell in cells.values())


@pytest.mark.parametrize("recipe", RECORDS)
def test_figures_of_others_are_those_of_the_catalogue(
    recipe: str, records: ModuleType, tmp_path: Path
) -> None:
    kept = ROOT / f"results/{recipe}.json"
    shutil.copy(kept, tmp_path)
    write_references(recipe, tmp_path)
    assert (tmp_path / kept.name).read_text() == kept.read_text()
    others = [row for row in Results.load(kept).rows if row.kind is not None]
    assert bool(others) == bool(RECORDS[recipe].references)
    page = records.record(recipe)
    assert all(f"({row.kind}): {row.source}." in page for row in others)
    assert not any("published" in row.name for row in Results.load(kept).rows)


@pytest.mark.parametrize(("recipe", "named"), PARTS)
def test_a_part_of_a_record_is_the_cases_that_begin_so(
    recipe: str, named: str, records: ModuleType
) -> None:
    beginnings = tuple(named.split("; ")[1:])
    part, whole = table(records.record(recipe, *beginnings)), table(records.record(recipe))
    for beginning in beginnings:
        assert any(f"{case}:".startswith(beginning) for case in part), beginning
    for case, cells in part.items():
        assert f"{case}:".startswith(beginnings)
        assert cells.items() <= whole[case].items()
    assert len(part) < len(whole)


def test_no_case_is_an_error(records: ModuleType) -> None:
    with pytest.raises(ValueError, match="no case begins with nothing"):
        records.record("scan", "nothing")


@pytest.mark.parametrize("recipe", WITH_MISTAKES)
def test_slices_and_mistakes_are_those_that_were_found(recipe: str, records: ModuleType) -> None:
    found = json.loads((ROOT / f"results/mistakes/{recipe}.json").read_text(encoding="utf-8"))
    shown = table(records.slices(recipe))
    assert set(shown) == set(found["slices"])
    for case, parts in found["slices"].items():
        said = "; ".join(shown[case].values())
        assert all(f"{part['value']:.1f} % of {part['examples']}" in said for part in parts)
    text, drawings = records.mistakes(recipe, "pictures"), records.drawings()
    for number, each in enumerate(found["mistakes"], start=1):
        assert f"confidence {each['confidence']:.2f}" in text
        assert each["output"] != each["expected"]
        if each["attention"] is not None:
            assert drawings[f"mistake_{recipe}_{number}"]().startswith("<svg")


@pytest.mark.parametrize(("experiment", "case"), PICTURED)
def test_what_is_shown_of_a_model_is_drawn(
    experiment: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    module = import_module("docs_shown")
    names = re.findall(r"\]\(pictures/(\w+).svg\)", module.shown(experiment, case, "pictures"))
    found = json.loads((ROOT / f"results/shown/{experiment}.json").read_text(encoding="utf-8"))
    assert len(names) == len(found[case]) > 0
    drawings = module.shown_drawings()
    for name, one in zip(names, found[case], strict=True):
        drawn = drawings[name]()
        assert drawn.startswith("<svg")
        assert all(f">{word}<" in drawn for word in one["trace"]["sources"][:3] if word.isalpha())
