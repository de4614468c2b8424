"""The views of the documentation come from results/gallery, and the overview page is complete."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.gallery import Exhibit
from benchmarks.gallery.__main__ import CASES
from tests.inspection.drawings import titles
from tests.inspection.pages import check_page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = (ROOT / "docs/pictures.md").read_text(encoding="utf-8")


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("docs_views")
    sys.modules.pop("docs_views", None)


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_left_a_file_that_says_where_it_is_from(case: str) -> None:
    exhibit = Exhibit.load(ROOT / f"results/gallery/{case}.json")
    results, shown = exhibit.results, exhibit.shown
    assert results.made_by == f"python -m benchmarks.gallery --cases {case}"
    assert results.machine.threads == 1
    assert {"python", "torch", "foveal"} <= set(results.versions)
    assert {"model", "training"} <= set(results.spec) or {"task", "training"} <= set(results.spec)
    assert all(len(digest) == 64 for digest in results.data.values())
    *scores, time = results.rows
    assert time.name == "wall-clock"
    assert scores
    assert all(row.seeds and 0 <= row.value <= 100 for row in scores)
    assert {"output", "reference"} <= set(shown.facts)


def test_every_view_is_shown_and_nothing_else(views: ModuleType) -> None:
    shown = re.findall(r"^<!-- picture: (view_\w+) -->$", PICTURES, re.MULTILINE)
    assert sorted(shown) == sorted(views.VIEWS)
    assert sorted(views.CAPTIONS) == sorted(views.VIEWS)
    assert {view.case for view in views.GALLERY_VIEWS.values()} == set(CASES)


def test_a_drawing_has_the_weights_of_its_file(views: ModuleType) -> None:
    for name, case in (("view_softmax", "softmax"), ("view_segment", "segment")):
        trace = Exhibit.load(ROOT / f"results/gallery/{case}.json").shown.trace
        said = [
            text.rpartition(": ")[2] for text in titles(views.VIEWS[name]()) if " reads " in text
        ]
        weights = [weight for row in trace.weights for weight in row]
        assert len(said) == len(weights)
        for text, weight in zip(said, weights, strict=True):
            assert (weight < 0.001) if text.startswith("<") else abs(float(text) - weight) <= 6e-4


def test_captions_give_the_scores_of_the_file(views: ModuleType) -> None:
    for name, view in views.GALLERY_VIEWS.items():
        if name in ("view_gold", "view_beam_tree", "view_curves"):  # model with an earlier caption
            continue
        caption = views.CAPTIONS[name]()
        for row in views.exhibit(view.case).results.rows[:-1]:
            assert f"{row.value:.1f} {row.unit}" in caption


def test_the_page_of_all_views(views: ModuleType) -> None:
    reader = check_page(views.PAGES["views"]())
    assert len(reader.all("svg")) == len(views.VIEWS)
    assert len(reader.all("table")) == len(views.VIEWS)
