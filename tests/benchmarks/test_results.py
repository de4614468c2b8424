"""The results format: round trip, targets, and rows that are measured again."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from benchmarks import shortfalls
from benchmarks.results import Machine, Results, ResultsError, Row

ROOT = Path(__file__).resolve().parents[2]
ROW = Row(
    name="chain train (32, 25, 2) vs torch-struct",
    value=3.5,
    unit="x faster",
    spread=(3.1, 4.2),
    seeds=(0,),
    target=3.0,
    sense=">=",
)
PLAIN = Row(name="chain edges train (32, 25, 2) time", value=0.25, unit="ms")
RESULTS = Results(
    made_by="python -m benchmarks.structures",
    date="2026-01-31",
    versions={"python": "3.11.7", "torch": "2.13.0"},
    machine=Machine(cpu="A processor", cores=2, threads=1),
    rows=(ROW, PLAIN),
)


def test_the_file_has_the_fields_of_the_format() -> None:
    content = json.loads(RESULTS.to_json())
    assert list(content) == ["made_by", "date", "versions", "machine", "rows"]
    assert content["rows"][0] == {
        "name": "chain train (32, 25, 2) vs torch-struct",
        "value": 3.5,
        "unit": "x faster",
        "spread": [3.1, 4.2],
        "seeds": [0],
        "target": 3.0,
        "sense": ">=",
    }
    assert set(content["machine"]) == {"cpu", "cores", "threads", "device"}


def test_json_round_trip() -> None:
    assert Results.from_json(RESULTS.to_json()) == RESULTS


def test_data_and_spec_stand_in_the_file_only_where_there_are_some() -> None:
    trained = replace(RESULTS, data={"corpus/train.txt": "0" * 64}, spec={"command": "train"})
    content = json.loads(trained.to_json())
    assert content["data"] == {"corpus/train.txt": "0" * 64}
    assert content["spec"] == {"command": "train"}
    assert Results.from_json(trained.to_json()) == trained
    assert trained.with_rows([replace(PLAIN, name="another")]).data == trained.data


def test_save_and_load_leave_nothing_else_behind(tmp_path: Path) -> None:
    path = tmp_path / "new" / "structures.json"
    RESULTS.save(path)
    replace(RESULTS, rows=(PLAIN,)).save(path)
    assert Results.load(path).rows == (PLAIN,)
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "structures.json"
    RESULTS.save(path)
    with pytest.raises(ValueError, match="JSON compliant"):
        replace(RESULTS, rows=(replace(PLAIN, value=math.inf),)).save(path)
    assert Results.load(path) == RESULTS
    assert list(tmp_path.iterdir()) == [path]


def test_not_a_number_is_null_and_misses(tmp_path: Path) -> None:
    path = tmp_path / "structures.json"
    lost = replace(ROW, value=math.nan, spread=(math.nan, math.nan))
    replace(RESULTS, rows=(lost,)).save(path)
    assert json.loads(path.read_text())["rows"][0]["value"] is None
    row = Results.load(path).rows[0]
    assert math.isnan(row.value)
    assert row.misses


@pytest.mark.parametrize(
    ("value", "sense", "misses"),
    [
        (3.0, ">=", False),
        (2.9, ">=", True),
        (3.0, "<=", False),
        (3.1, "<=", True),
        (3.1, None, False),
    ],
)
def test_missed(value: float, sense: str | None, misses: bool) -> None:
    target = None if sense is None else 3.0
    row = Row(name="a", value=value, unit="x", target=target, sense=sense)  # pyright: ignore[reportArgumentType]
    assert replace(RESULTS, rows=(row,)).missed() == ((row,) if misses else ())


def test_a_target_needs_a_sense() -> None:
    with pytest.raises(ResultsError, match="target and sense must be given together"):
        Row(name="a", value=1.0, unit="x", target=3.0)
    with pytest.raises(ResultsError, match="sense must be one of <=, >=, got '<'"):
        Row(name="a", value=1.0, unit="x", target=3.0, sense="<")  # pyright: ignore[reportArgumentType]


def test_a_figure_of_others_has_a_kind_and_a_source() -> None:
    other = replace(PLAIN, kind="baseline", source="a shared task, README")
    found = replace(RESULTS, rows=(PLAIN, other))
    assert Results.from_json(found.to_json()) == found
    measured, said = json.loads(found.to_json())["rows"]
    assert "kind" not in measured
    assert (said["kind"], said["source"]) == ("baseline", "a shared task, README")
    with pytest.raises(ResultsError, match="kind and source must be given together"):
        replace(PLAIN, kind="baseline")
    with pytest.raises(ResultsError, match="kind must be one of baseline, best system"):
        replace(PLAIN, kind="published", source="somewhere")


def test_measured_again_a_row_is_replaced_and_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "structures.json"
    RESULTS.save(path)
    again, new = replace(ROW, value=4.0), replace(PLAIN, name="another")
    later = replace(RESULTS, date="2026-02-01", versions={**RESULTS.versions, "supar": "1.1.4"})
    merged = replace(later, rows=()).continued_from(path).with_rows([again, new])
    assert merged.rows == (again, PLAIN, new)
    assert merged.date == "2026-02-01"


def test_rows_of_other_circumstances_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "structures.json"
    RESULTS.save(path)
    for other in (
        replace(RESULTS, versions={"python": "3.11.7", "torch": "2.14.0"}),
        replace(RESULTS, machine=Machine(cpu="A processor", cores=2, threads=2)),
    ):
        with pytest.raises(ResultsError, match=r"measured under other circumstances .*--fresh"):
            other.continued_from(path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "structures.json"
    for text in ("{", "[]", '{"rows": []}', RESULTS.to_json().replace('"unit"', '"units"')):
        path.write_text(text)
        with pytest.raises(ResultsError, match=r"structures\.json is not a results file"):
            Results.load(path)


def test_here_names_no_host() -> None:
    results = Results.here("a test", packages=["torch-struct"])
    assert set(results.versions) == {"python", "torch", "foveal", "torch-struct"}
    assert results.machine.cores >= 1
    assert results.machine.threads >= 1
    with pytest.raises(ResultsError, match="no-such-package is not installed"):
        Results.here("a test", packages=["no-such-package"])


def test_shortfalls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RESULTS.save(tmp_path / "one.json")
    shortfalls.main([str(tmp_path)])
    assert capsys.readouterr().out == "nothing falls short\n"
    short = replace(ROW, value=1.5)
    replace(RESULTS, rows=(short,)).save(tmp_path / "two.json")
    assert [each.row for each in shortfalls.shortfalls(tmp_path)] == [short]
    shortfalls.main([str(tmp_path)])
    printed = capsys.readouterr().out
    assert "1.5" in printed
    assert "nowhere" in printed


def test_every_shortfall_is_explained_next_to_its_table() -> None:
    found = shortfalls.shortfalls(ROOT / "results")
    assert found
    for each in found:
        assert each.explained is not None, f"{each.name}: {each.row.name} has no explanation"
        page, _, anchor = each.explained.partition("#")
        section = _section((ROOT / "docs" / page).read_text(encoding="utf-8"), anchor)
        assert section is not None, f"{each.explained}: no such section"
        shown = rf"<!-- (?:results|record): {each.name}\b|<!-- {each.name}: "
        assert re.search(shown, section), f"{each.explained} does not show {each.name}"


def test_every_explanation_belongs_to_a_row() -> None:
    for name, beginning in shortfalls.EXPLAINED:
        rows = Results.load(ROOT / f"results/{name}.json").rows
        assert any(row.name.startswith(beginning) for row in rows), (name, beginning)


def _section(page: str, anchor: str) -> str | None:
    """Return the text of a page from the heading with this anchor to the next one."""
    parts = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        title, _, own = heading.partition(" {#")
        if anchor == (own.rstrip("}") or slugify(title, "-")):
            return text
    return None


def test_targets_and_published_figures_are_set_without_measuring_again() -> None:
    other = replace(PLAIN, name="paper", kind="paper", source="Somebody 2017, table 1")
    before = replace(RESULTS, rows=(ROW, PLAIN, other))
    newer = replace(other, value=4.0)
    found = before.with_references({PLAIN.name: (0.3, "<=")}, [newer])
    assert found.rows == (
        replace(ROW, target=None, sense=None),
        replace(PLAIN, target=0.3, sense="<="),
        newer,
    )


def test_figures_of_others_have_a_kind_and_a_source_in_all_results() -> None:
    others = re.compile(r"\bet al\b|organizers|submission|tutorial|of the paper|for the paper")
    for path in sorted((ROOT / "results").glob("*.json")):
        for row in Results.load(path).rows:
            assert row.kind is not None or not others.search(row.name), (path.name, row.name)
            if row.kind is not None:
                assert row.target is None, (path.name, row.name)
