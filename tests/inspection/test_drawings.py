"""Requirements for every view and every input."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings, strategies as st

from foveal.views import Section, page
from foveal.views._text import bounded, width
from tests.inspection.drawings import (
    ARABIC,
    ENGLISH,
    HOSTILE,
    ISOLATES,
    JAPANESE,
    SVG,
    VIEWS,
    parsed,
)

pytestmark = pytest.mark.slow

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
DRAWN_WITH = {
    "svg", "title", "desc", "style", "g", "rect", "circle", "path", "text", "image", "mask", "use",
    "defs",
}  # fmt: skip
FONT_SIZES = {"small": 11.0}
INPUTS = {
    "short": ENGLISH,
    "one": ("a",),
    "arabic": ARABIC,
    "japanese": JAPANESE,
    "hostile": HOSTILE,
    "forty": tuple(f"internationalization{index}" for index in range(40)),
}

views = pytest.mark.parametrize("view", VIEWS)
inputs = pytest.mark.parametrize("tokens", INPUTS.values(), ids=INPUTS)


def check_safe(drawing: str) -> ET.Element:
    """A drawing is well-formed, runs and fetches nothing, and has no duplicate id."""
    root = parsed(drawing)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= DRAWN_WITH
    keys = [key for element in root.iter() if (key := element.get("id"))]
    assert len(keys) == len(set(keys))
    for element in root.iter():
        for name, content in element.attrib.items():
            assert not name.startswith("on")
            if name == "href":
                assert content.startswith(("#", "data:image/png;base64,"))
            if "url(" in content:
                assert re.fullmatch(r"url\(#sl-[0-9a-f]{12}\)", content)
    style = root.findtext(f"{SVG}style") or ""
    assert "url(" not in style
    assert "@import" not in style
    return root


@views
@inputs
def test_a_drawing_is_safe_and_says_what_it_is(view: str, tokens: Sequence[str]) -> None:
    drawing = VIEWS[view](tokens)
    root = check_safe(drawing)
    assert "://" not in drawing.replace(NAMESPACE, "")
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == root.get("aria-label")
    assert root[1].tag == f"{SVG}desc"
    assert root[1].text
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert drawing == VIEWS[view](tokens)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(codec=None), max_size=12), min_size=1, max_size=8))
@example(list(HOSTILE))
def test_any_text_is_escaped_and_kept(tokens: list[str]) -> None:
    for view, draw in VIEWS.items():
        root = check_safe(draw(tokens))
        said = ISOLATES.sub("", "\n".join(title.text or "" for title in root.iter(f"{SVG}title")))
        # XML reads a carriage return as a line feed, so there must be none.
        assert "\r" not in said
        drawn = tokens[:8] if view == "curves" else tokens
        if view == "sentences":  # empty labels at the end pad a sentence
            drawn = [token for token in tokens if token]
        for token in drawn:
            assert ISOLATES.sub("", bounded(token)) in said, view


def _span(element: ET.Element) -> tuple[float, float, float]:
    """Return the left, right and height of a text, with the estimate of the layout."""
    classes = element.get("class", "").split()
    font = 11.0 if "small" in classes else 14.0 if "word" in classes else 13.0
    room = font * width(element.text or "")
    x, y = float(element.get("x", 0)), float(element.get("y", 0))
    share = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
    return x - share * room, x + (1 - share) * room, y


@views
@inputs
def test_nothing_is_cut_off(view: str, tokens: Sequence[str]) -> None:
    root = parsed(VIEWS[view](tokens))
    across, down = float(root.get("width", 0)), float(root.get("height", 0))
    moved = {
        child for group in root.iter(f"{SVG}g") if group.get("transform") for child in group.iter()
    }
    for element in root.iter():
        if element in moved or element.get("transform"):
            continue
        if element.tag == f"{SVG}text":
            left, right, y = _span(element)
            assert left >= -1
            assert right <= across + 1, element.text
            assert 9 <= y <= down - 3
        elif element.tag == f"{SVG}rect":
            box = [float(element.get(name, 0)) for name in ("x", "y", "width", "height")]
            assert box[0] >= 0
            assert box[1] >= 0
            assert box[0] + box[2] <= across
            assert box[1] + box[3] <= down
            assert box[2] >= 0


@views
def test_labels_are_shortened_and_names_are_bounded(view: str) -> None:
    """A token of a megabyte gives a drawing of some kilobytes."""
    drawing = VIEWS[view](["a" * 1_000_000, "b"])
    assert len(drawing) < 40_000


@views
def test_it_can_stand_on_a_page_twice(view: str) -> None:
    drawing = VIEWS[view](ENGLISH)
    text = page("Twice", [Section(title="Both", drawings=(drawing, drawing))])
    keys = re.findall(r'\bid="([^"]+)"', text)
    assert len(keys) == len(set(keys))
    for key in re.findall(r'(?:url\(|href=")#(sl-[^")]+)', text):
        assert key in keys
