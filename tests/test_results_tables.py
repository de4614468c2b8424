"""The summaries of the results pages match results/, and name a winner only if the difference is
significant.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import mean
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from benchmarks.results import Row

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MODULES = (
    "results_tables",
    "docs_structure",
    "docs_shelf",
    "docs_summaries",
    "docs_comparisons",
    "docs_dots",
    "docs_records",
    "stored_files",
)
PAGE = (DOCS / "records/does_structure_help.md").read_text(encoding="utf-8")
INTERVAL = re.compile(r"([+-]?[\d.]+) \((?:(-?[\d.]+) to (-?[\d.]+)|no interval)\)")
CHARTS = sorted((DOCS / "assets/records").glob("*.svg"))
IMAGE = re.compile(r"!\[([^\]]+)\]\(([^)]+\.svg)\)")


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("results_tables")
    for name in MODULES:
        sys.modules.pop(name, None)


def block(name: str) -> list[dict[str, str]]:
    """Return the rows of a stored table of the page, by column."""
    found = re.search(rf"<!-- begin: {name} [^>]*-->\n(.*?)<!-- end: {name} -->", PAGE, re.DOTALL)
    assert found is not None
    plain = found[1].replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")
    head, _, *lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in plain.splitlines()
    ]
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_the_pages_and_charts_are_those_of_the_results(tables: ModuleType) -> None:
    contents = tables.contents()
    assert sorted(path for path in contents if path.suffix == ".svg") == CHARTS
    assert import_module("stored_files").outdated(contents) == []


@pytest.mark.parametrize(("page", "changed"), [("records/index.md", "docs_summaries")])
def test_another_figure_makes_a_page_outdated(
    page: str, changed: str, tables: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module(changed)
    rows = module.rows
    monkeypatch.setattr(
        module,
        "rows",
        lambda name: {key: _moved(row) for key, row in rows(name).items()},
    )
    text = (DOCS / page).read_text(encoding="utf-8")
    assert tables.filled(text, tables.BLOCKS[page]) != text


def _moved(row: Row) -> Row:
    return replace(row, value=row.value + 1)


@pytest.mark.parametrize("name", ["structure", "attention"])
def test_the_winner_is_the_better_model_or_neither(name: str) -> None:
    rows = block(name)
    assert len(rows) >= 19
    first = next(column for column in rows[0] if column in ("structured", "attention"))
    for row in rows:
        model, _, ours = row[first].rpartition(" ")
        baseline, _, theirs = row["baseline"].rpartition(" ")
        found = INTERVAL.fullmatch(row["difference (95 % interval)"])
        assert found is not None, row
        difference = float(found[1])
        assert difference == pytest.approx(float(ours) - float(theirs), abs=0.11)
        assert ("errors" in row["task"]) == row["task"].endswith("↓")
        better = model if (difference > 0) == row["task"].endswith("↑") else baseline
        if found[2] is None:
            assert (row["winner"], row["seeds"]) == ("undecided: one seed", "1")
        elif float(found[2]) <= 0 <= float(found[3]):
            assert row["winner"] == "neither"
        else:
            assert row["winner"] == f"**{better}**"
            assert float(found[2]) <= difference <= float(found[3])


def test_every_comparison_has_the_direction_of_its_metric(tables: ModuleType) -> None:
    for each in (*tables.STRUCTURE, *tables.ATTENTION):
        text = (ROOT / f"results/{each.results}.json").read_text(encoding="utf-8")
        rows = {row["name"]: row for row in json.loads(text)["rows"]}
        found = [rows[side.row] for side in (each.structured, each.baseline)]
        assert (each.sense == "<=") == each.structured.row.endswith("wer")
        assert each.difference == pytest.approx(found[0]["value"] - found[1]["value"])
        assert (each.interval is None) == (len(found[0]["seeds"]) == 1)
        if each.winner == each.structured.name:
            assert (each.difference > 0) == (each.sense == ">=")
        elif each.winner == each.baseline.name:
            assert (each.difference < 0) == (each.sense == ">=")


@pytest.mark.usefixtures("tables")
def test_the_interval_is_that_of_welch() -> None:
    comparisons = import_module("docs_comparisons")
    # Two samples with t = -2.46 and 25.0 degrees of freedom; the quantile there is 2.060.
    first = (
        27.5,
        21.0,
        19.0,
        23.6,
        17.0,
        17.9,
        16.9,
        20.1,
        21.9,
        22.6,
        23.1,
        19.6,
        19.0,
        21.7,
        21.4,
    )
    second = (
        27.1,
        22.0,
        20.8,
        23.4,
        23.4,
        23.5,
        25.8,
        22.0,
        24.8,
        20.2,
        21.9,
        22.1,
        22.9,
        20.5,
        24.4,
    )
    low, high = comparisons.welch_interval(first, second)
    difference = mean(first) - mean(second)
    assert (low + high) / 2 == pytest.approx(difference)
    assert (high - low) / 2 == pytest.approx(2.060 * difference / -2.46, rel=0.005)
    assert comparisons.welch_interval((1.0,), (2.0, 3.0)) is None
    assert comparisons.welch_interval((1.0, 1.0), (2.0, 2.0)) == (-1.0, -1.0)
    quantiles = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 30: 2.042}
    for freedom, quantile in quantiles.items():
        assert comparisons.t_quantile(0.975, freedom) == pytest.approx(quantile, abs=6e-4)
    assert comparisons.t_quantile(0.975, 2.5) < comparisons.t_quantile(0.975, 2)


@pytest.mark.usefixtures("tables")
def test_the_values_of_seeds_follow_from_mean_and_range() -> None:
    comparisons = import_module("docs_comparisons")

    def row(*values: float) -> Row:
        spread = (min(values), max(values))
        seeds = tuple(range(len(values)))
        return Row(name="row", value=mean(values), unit="%", spread=spread, seeds=seeds)

    assert comparisons.seed_values(row(3.0, 1.0, 2.5)) == pytest.approx((1.0, 2.5, 3.0))
    assert comparisons.seed_values(row(3.0, 1.0)) == (1.0, 3.0)
    assert comparisons.seed_values(row(3.0)) == (3.0,)
    with pytest.raises(ValueError, match="4 seeds do not follow"):
        comparisons.seed_values(row(1.0, 2.0, 3.0, 4.0))


def test_the_page_counts_the_sets_on_which_the_inflection_baseline_is_ahead(
    tables: ModuleType,
) -> None:
    summaries = import_module("docs_summaries")
    rows = summaries.rows("inflection")
    ours = {case: rows[f"{case}: wer"].value for case in summaries.INFLECTION}
    theirs = {case: rows[f"{case}: organizers' non-neural baseline"].value for case in ours}
    behind = [case for case in ours if ours[case] > theirs[case]]
    text = (DOCS / "records/index.md").read_text(encoding="utf-8")
    assert f"more errors on {len(behind)} of the {len(ours)} sets" in text
    assert "fewer errors than the non-neural baseline on average" in text
    assert mean(ours.values()) < mean(theirs.values())
    ahead = {summaries.INFLECTION[case].split()[0] for case in ours if case not in behind}
    caption = re.search(r"The recipe is ahead of the non-neural baseline for ([^.]+)\.", text)
    assert caption is not None
    assert set(re.findall(r"[A-Z][a-z]+", caption[1])) == ahead
    assert tables.CHARTS["inflection"]().count("<circle") == len(ours) + 1  # plus one in the legend


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.stem)
def test_a_chart_has_both_schemes_and_is_shown_with_a_text_and_a_caption(chart: Path) -> None:
    svg = chart.read_text(encoding="utf-8")
    ET.fromstring(svg)
    assert "prefers-color-scheme:dark" in svg
    pages = [path.read_text(encoding="utf-8") for path in sorted((DOCS / "records").glob("*.md"))]
    shown = [
        (text, match)
        for text in pages
        for match in IMAGE.finditer(text)
        if match[2].endswith(f"assets/records/{chart.name}")
    ]
    ((text, match),) = shown
    assert len(match[1].split()) >= 5
    assert text[match.end() :].startswith("\n\n<figcaption>")


@pytest.mark.usefixtures("tables")
def test_a_chart_refuses_a_value_outside_its_axis_and_a_label_that_is_too_long() -> None:
    drawing = import_module("docs_dots")

    def draw(value: float, label: str = "line", low: float = -math.inf) -> str:
        line = drawing.Line(label, [drawing.Figure(0, value, low, value)])
        return drawing.dots([line], title="t", series=("s",), x_label="x", ticks=(0, 1))

    assert "l-5 4l5 4" in draw(0.5)  # the range continues to the left: an arrow
    assert "l-5 4l5 4" not in draw(0.5, low=0.25)
    with pytest.raises(ValueError, match=r"2 is not between 0 and 1"):
        draw(2)
    with pytest.raises(ValueError, match="Shorten one"):
        draw(0.5, label="label " * 20)
