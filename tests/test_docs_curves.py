"""The curves of the documentation show exactly the figures in results/."""

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile("(?P<panel>copy|reverse) with (?P<curve>.+), length (?P<place>[0-9]+)")


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("docs_curves")
    for name in ("docs_curves", "docs_pictures", "docs_views"):
        sys.modules.pop(name, None)


def row(name: str, value: float, spread: list[float] | None = None) -> dict[str, Any]:
    return {"name": name, "value": value, "spread": spread}


def test_rows_become_points_by_panel_and_curve(
    curves: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        row("copy with attention, length 5", 90.0, [80.0, 95.0]),
        row("copy with attention, length 10", 70.0),
        row("copy with no attention, length 5", 50.0, [40.0, 60.0]),
        row("reverse with attention, length 5", 30.0, [20.0, 40.0]),
        row("wall-clock of a run", 12.0, [10.0, 14.0]),
    ]
    (tmp_path / "some.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(curves, "RESULTS", tmp_path)
    assert curves.read_curves("some", NAME) == {
        "copy": {
            "attention": [(5, 90.0, 80.0, 95.0), (10, 70.0, 70.0, 70.0)],
            "no attention": [(5, 50.0, 40.0, 60.0)],
        },
        "reverse": {"attention": [(5, 30.0, 20.0, 40.0)]},
    }


def test_a_file_without_such_rows_is_an_error(
    curves: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some.json").write_text(json.dumps({"rows": [row("F1", 1.0)]}))
    monkeypatch.setattr(curves, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match=r"results/some\.json: no row is called like"):
        curves.read_curves("some", NAME)


@pytest.mark.parametrize(
    ("example", "panels", "places"),
    [
        ("copy_and_reverse", ["copy", "reverse"], list(range(5, 41, 5))),
        ("prefix_to_infix", ["formulas"], list(range(2, 7))),
    ],
)
def test_every_figure_of_an_example_is_drawn(
    curves: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    example: str,
    panels: list[str],
    places: list[int],
) -> None:
    drawn: dict[str, Any] = {}

    def keep(found: dict[str, Any], *_: Any, **__: Any) -> str:
        drawn.update(found)
        return ""

    assert curves.CURVES[example]().count("<svg") == 1
    monkeypatch.setattr(curves, "_svg", keep)
    curves.CURVES[example]()
    assert list(drawn) == panels
    for panel in drawn.values():
        assert set(panel) == {"attention", "no attention"}
        for points in panel.values():
            assert [point.place for point in points] == places
            assert all(0 <= p.lowest <= p.mean <= p.highest <= 100 for p in points)


def test_language_models_are_drawn_by_size_and_by_data(
    curves: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        row(f"{panel} of {network}, {place}: bits per character", 2.5, [2.4, 2.6])
        for panel in ("size", "data")
        for network in ("transformer", "lstm")
        for place in (400_000, 1_000)
    ]
    (tmp_path / "self_attention_lm.json").write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(curves, "RESULTS", tmp_path)
    drawn = curves.scaling()
    assert drawn.count("<svg") == 1
    for label in ("transformer", "lstm", "weights", "characters of the training set"):
        assert label in drawn
