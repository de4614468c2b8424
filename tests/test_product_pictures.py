"""The pictures of the product match the current code: scripts/product_pictures.py."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from benchmarks.browser import BrowserMissingError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "docs/assets/product"
PAGES = ("explain", "report", "doctor", "explorer")
MOST_BYTES = 1_000_000  # of all pictures together
USED = re.compile(r"assets/product/([a-z_]+(?:-light|-dark)?\.(?:png|svg))")


@pytest.fixture(scope="module")
def pictures() -> Iterator[ModuleType]:
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(ROOT / "scripts"))
    yield import_module("product_pictures")
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith(("product_", "docs_views")):
            del sys.modules[name]


def test_no_picture_is_outdated(pictures: ModuleType) -> None:
    assert pictures.outdated() == [], "run python scripts/product_pictures.py"


@pytest.mark.parametrize(
    ("stored", "made", "same"),
    [
        ("p = 0.457, -1.49", "p = 0.458, -1.50", True),  # rounding on another processor
        ("M10.5 200h3", "M10.6 202h3", True),
        ("p = 0.46", "p = 0.52", False),
        ("M10.5 200h3", "M10.5 210h3", False),
        ("confidence 0.46", "probability 0.46", False),
        ("1 2", "1 2 3", False),
    ],
)
def test_numbers_may_differ_by_rounding_and_words_not_at_all(
    pictures: ModuleType, stored: str, made: str, *, same: bool
) -> None:
    assert pictures.is_same(stored, made) is same


def test_other_texts_and_styles_make_a_page_outdated(pictures: ModuleType) -> None:
    record, html = pictures.page_record, pictures.written_page("explain")
    assert pictures.is_same(record(html), record(html))
    for old, new in (("Probability of each step", "Steps"), ("max-width", "width"), ("<h2", "<h3")):
        assert old in html
        assert not pictures.is_same(record(html), record(html.replace(old, new)))


def test_a_drawing_that_is_missing_or_differs_is_outdated(
    pictures: ModuleType, tmp_path: Path
) -> None:
    drawing = (STORED / "speed.svg").read_text(encoding="utf-8")
    assert pictures.is_outdated(tmp_path / "speed.svg", drawing)
    (tmp_path / "speed.svg").write_text(drawing.replace("semi-Markov", "segments"))
    assert pictures.is_outdated(tmp_path / "speed.svg", drawing)
    (tmp_path / "speed.svg").write_text(drawing)
    assert not pictures.is_outdated(tmp_path / "speed.svg", drawing)


def test_every_picture_is_small_and_on_a_page() -> None:
    files = {path.name for path in STORED.iterdir()}
    assert {f"{page}-{scheme}.png" for page in PAGES for scheme in ("light", "dark")} < files
    assert sum(path.stat().st_size for path in STORED.iterdir()) < MOST_BYTES
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert {name for text in texts for name in USED.findall(text.read_text("utf-8"))} == files


@pytest.mark.parametrize("page", PAGES)
def test_a_browser_takes_the_stored_pictures(
    page: str, pictures: ModuleType, tmp_path: Path
) -> None:
    try:
        pictures.take_screenshot(page, tmp_path)
    except BrowserMissingError as error:
        pytest.skip(str(error))
    for scheme in ("light", "dark"):
        stored, taken = (
            np.asarray(Image.open(folder / f"{page}-{scheme}.png").convert("L").resize((40, 60)))
            for folder in (STORED, tmp_path)
        )
        # The time of an answer, and the fonts of another machine, change few pixels.
        assert np.abs(stored.astype(float) - taken).mean() < 8
