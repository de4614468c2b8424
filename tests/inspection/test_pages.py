"""The page check fails if a page violates a requirement, and gives the reason."""

import re

import pytest

from foveal.views import Section, heatmap, page
from foveal.views._theme import DARK, LIGHT, Theme
from tests.inspection.drawings import ENGLISH, VIEWS, trace
from tests.inspection.pages import check_page, schemes


@pytest.fixture(scope="module")
def whole() -> str:
    drawings = tuple(draw(ENGLISH) for draw in VIEWS.values())
    return page("Whole", [Section(title="All", text="What it shows.", drawings=drawings)])


def test_a_whole_page_passes(whole: str) -> None:
    assert len(check_page(whole).all("svg")) == len(VIEWS)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("</main>", "", "closes another"),
        ("</body>", "</body></div>", "closes another"),
        ("<desc>", "<desc>&", "not well-formed"),
        ('id="content"', 'id="section-1"', "ids twice"),
        ("</main>", '<img alt="a dog" src="https://example.org/a.png"></main>', "<img> src="),
        ("</main>", '<a href="other.html">other</a></main>', "<a> href="),
        ('href="#content"', 'href="#contents"', "#contents"),
        ("</main>", "<script>alert(1)</script></main>", "fetch or run"),
        ("</main>", '<link rel="icon" href="#"></main>', "fetch or run"),
        ("<main ", '<main onclick="alert(1)" ', "onclick"),
        ("</style>", ".a{background:url(//example.org/a)}</style>", "url"),
        ("</style>", "@import 'a.css';</style>", "import"),
        ("default-src 'none'", "default-src *", "default-src"),
        ("</main>", '<img alt=" " src="data:image/png;base64,AAAA"></main>', "no text for"),
        ("<html lang=", "<html data-lang=", "the language"),
    ],
)
def test_a_fault_is_found(whole: str, old: str, new: str, fault: str) -> None:
    assert old in whole
    with pytest.raises((AssertionError, SyntaxError), match=re.escape(fault)):
        check_page(whole.replace(old, new, 1))


def test_a_drawing_must_say_what_it_is(whole: str) -> None:
    unnamed = re.sub(r'(<svg[^>]*) aria-label="[^"]*"', r"\1", whole)
    with pytest.raises(AssertionError, match="no text for"):
        check_page(unnamed)


def test_a_page_that_is_too_large(whole: str) -> None:
    with pytest.raises(AssertionError, match="bytes"):
        check_page(whole.replace("What it shows.", "x" * 1_000_000))


def test_a_served_page_may_run_its_own_code(whole: str) -> None:
    check_page(whole.replace("</main>", "<script>alert(1)</script></main>"), scripts=True)


@pytest.mark.parametrize(
    ("theme", "faint", "said"),
    [(LIGHT, "#e6e6e6", "light: "), (DARK, "#2a2d33", "dark: ")],
    ids=["light", "dark"],
)
@pytest.mark.parametrize("role", ["text", "muted", "accent", "edge"])
def test_a_color_too_near_to_paper_is_found(
    whole: str, theme: Theme, faint: str, said: str, role: str
) -> None:
    with pytest.raises(AssertionError, match=said):
        check_page(whole.replace(theme._asdict()[role], faint))


def test_numbers_are_held_against_the_ink_of_their_cell() -> None:
    text = page("x", [Section(title="y", drawings=(heatmap(trace(ENGLISH, ENGLISH)),))])
    check_page(text)
    # The page has numbers on pale ink and on dark ink: one text color for both must fail.
    with pytest.raises(AssertionError, match=r"text \.kw"):
        check_page(re.sub(r'class="(kw|ww|wk|kk) small"', 'class="kw small"', text))


def test_styles_are_read_in_both_schemes() -> None:
    style = (
        ":root{--a:#000000;--b:#111}/* no */@media print{.x{color:#fff}}"
        "@media screen and (prefers-color-scheme:dark){:root{--a:#ffffff}.y{color:var(--b)}}"
        ".x,.z{color:var(--a)}"
    )
    light, dark = schemes([style])
    assert light.value(".x", "color") == light.value(".z", "color") == (0, 0, 0)
    assert dark.value(".x", "color") == (255, 255, 255)
    assert light.value(".y", "color") is None
    assert dark.value(".y", "color") == (17, 17, 17)
