"""The page is one self-contained file."""

import re

import pytest
from hypothesis import example, given, settings, strategies as st

from foveal.errors import ValueRangeError
from foveal.views import Section, heatmap, page, weights_table
from foveal.views._tables import Table
from tests.inspection.drawings import ENGLISH, HOSTILE, VIEWS, trace
from tests.inspection.pages import Reader, check_page


def _everything() -> str:
    shown = trace(ENGLISH, ENGLISH)
    sections = [
        Section(title=name, text="What it shows.\n\nAnd more.", drawings=(draw(ENGLISH),))
        for name, draw in VIEWS.items()
    ]
    scores = Table(caption="Scores", columns=("name", "value"), rows=(("BLEU", "31.4"),))
    return page(
        "All views",
        [*sections, Section(title="Numbers", tables=(weights_table(shown), scores))],
    )


def test_a_page_is_whole_and_usable_without_a_mouse() -> None:
    reader = check_page(_everything())
    assert reader.tags[0][1]["lang"] == "en"
    regions = [each for each in reader.all("div") if "scroll" in each["class"]]
    assert regions
    assert all(each["tabindex"] == "0" and each["aria-label"] for each in regions)
    assert len(reader.all("svg")) == len(VIEWS)
    assert all(each["role"] == "img" and each["aria-label"] for each in reader.all("svg"))
    assert len(reader.all("caption")) == len(reader.all("table")) == 2
    assert {each["scope"] for each in reader.all("th")} == {"row", "col"}
    assert len(reader.all("details")) == 1  # the weights are folded, the scores are not
    assert len(reader.all("nav")) == 1
    assert reader.tags[[tag for tag, _ in reader.tags].index("a")][1]["href"] == "#content"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(codec=None), max_size=30), min_size=4, max_size=4))
@example(list(HOSTILE[:4]))
@example(list(HOSTILE[-8:-4]))
def test_any_text_is_escaped(texts: list[str]) -> None:
    title, heading, paragraph, cell = texts
    table = Table(caption=cell, columns=(cell, cell), rows=((cell, cell),), folded=True)
    text = page(title, [Section(title=heading, text=paragraph, tables=(table,))] * 3)
    reader = check_page(text)
    assert len(reader.all("td")) == 3
    assert len(reader.all("h2")) == 3
    text.encode()


def test_what_was_written_can_be_read() -> None:
    text = page("<b>", [Section(title="&amp;", text="one\n\ntwo <i>\nstill two")])
    said = Reader(text).said
    assert said.count("<b>") == 2  # in the title bar and in the heading
    assert "&amp;" in said
    assert "two <i>\nstill two" in said


def test_tables_too_large_for_paper_are_not_printed() -> None:
    def folded(columns: int, rows: int) -> str:
        table = Table(
            caption="t", columns=("c",) * columns, rows=(("x",) * columns,) * rows, folded=True
        )
        (details,) = check_page(page("p", [Section(title="s", tables=(table,))])).all("details")
        return details.get("class", "")

    assert folded(12, 40) == ""
    assert folded(13, 1) == folded(2, 41) == "large"


@pytest.mark.parametrize(
    ("drawing", "fault"),
    [
        ("plain words", "not well-formed"),
        ("<p>words</p>", "a <p>"),
        ('<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>', "a <script> element"),
        ('<svg xmlns="http://www.w3.org/2000/svg" onload="x()"/>', "the attribute onload"),
        ('<svg><image href="https://example.org/a.png"/></svg>', "the address 'https:"),
        ('<svg><use href="other.svg#a"/></svg>', "the address 'other"),
        ("<svg><foreignObject/></svg>", "a <foreignObject> element"),
        ("<svg><style>@import 'a.css'</style></svg>", "a style that fetches"),
        ('<svg><rect style="fill:url(//example.org/a)"/></svg>', "a style that fetches"),
    ],
)
def test_only_drawings_that_keep_to_themselves(drawing: str, fault: str) -> None:
    with pytest.raises(ValueRangeError, match=re.escape(fault)):
        page("x", [Section(title="y", drawings=(drawing,))])


def test_a_page_over_a_megabyte_is_an_error() -> None:
    words = [f"word{index}" for index in range(60)]
    drawing = heatmap(trace(words, words))
    with pytest.raises(ValueRangeError, match=r"under 1000000 bytes, got \d+; the drawings of 'b'"):
        page("x", [Section(title="a"), Section(title="b", drawings=(drawing,) * 4)])


def test_an_empty_page() -> None:
    check_page(page("Nothing", []))
