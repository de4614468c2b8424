"""Contrast by the formula of WCAG 2, in both schemes."""

import re

import pytest

from foveal.views import Section, page
from foveal.views._theme import DARK, LIGHT, Theme, ramp, tone
from tests.inspection.drawings import ENGLISH, VIEWS
from tests.inspection.pages import READABLE, VISIBLE, contrast, luminance, rgb

themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def test_the_formula_knows_the_extremes() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.478, abs=1e-3)


@themes
def test_text_and_marks_stand_out_from_paper(theme: Theme) -> None:
    paper = rgb(theme.paper)
    for color in (theme.text, theme.muted, theme.accent, theme.ink, *theme.series):
        assert contrast(rgb(color), paper) >= READABLE, color
    assert contrast(rgb(theme.edge), paper) >= VISIBLE


@themes
def test_the_ramp_is_monotone_in_lightness(theme: Theme) -> None:
    steps = [luminance(ramp(theme, step / 200)) for step in range(201)]
    falling = theme is LIGHT
    assert steps == sorted(steps, reverse=falling)
    assert len({round(step, 6) for step in steps}) == len(steps)
    assert steps[0] == pytest.approx(luminance(rgb(theme.paper)))


@themes
def test_numbers_on_the_ramp_can_be_read(theme: Theme) -> None:
    for step in range(1001):
        chosen = tone(step / 1000)[0 if theme is LIGHT else 1]
        text = (0, 0, 0) if chosen == "k" else (255, 255, 255)
        assert contrast(text, ramp(theme, step / 1000)) >= READABLE, step


def _rules(style: str) -> dict[str, str]:
    return dict(re.findall(r"\.foveal \.(\w+)\{(?:fill|stroke):(#[0-9a-f]{6})", style))


def test_drawings_and_pages_use_these_colors() -> None:
    text = page("Colors", [Section(title="One", drawings=(VIEWS["heatmap"](ENGLISH),))])
    page_style, drawing_style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    screen = "@media screen and (prefers-color-scheme:dark)"  # print is always light
    for theme, style, rest in zip(
        (LIGHT, DARK), drawing_style.split(screen), page_style.split(screen), strict=True
    ):
        rules = _rules(style)
        for name in ("paper", "text", "muted", "ink"):
            assert rules[name] == theme._asdict()[name]
        assert rules["best"] == rules["mark"] == theme.accent
        assert rules["edge"] == theme.edge
        assert [rules[f"s{index}"] for index in range(6)] == list(theme.series)
        assert f"--paper:{theme.paper};--text:{theme.text};--muted:{theme.muted}" in rest
        assert f"--link:{theme.series[0]}" in rest
    colors = set(re.findall(r"#[0-9a-f]{6}\b", text))
    known = {color for theme in (LIGHT, DARK) for color in (*theme[:-1], *theme.series)}
    assert colors <= known
