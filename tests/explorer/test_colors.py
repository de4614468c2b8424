"""The page uses the colors of the drawings, with enough contrast between them."""

import re

import pytest

from foveal.views import Theme
from foveal.views._theme import DARK, LIGHT, channels, luminance, ramp
from foveal.web._assets import assets, theme_css

TINT = re.compile(r"calc\(var\(--share,0\)\*(\d+)%\),var\(--paper\)\)}\n\.chip \.token")


def contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    dark, light = sorted(luminance(*map(float, color)) for color in (first, second))
    return (light + 0.05) / (dark + 0.05)


def test_every_color_comes_from_the_theme() -> None:
    style = assets()["explorer.css"].content.decode()
    assert not re.search(r"#[0-9a-f]{3,8}\b|rgb\(|hsl\(", style)
    used = set(re.findall(r"var\(--([a-z]+)", style)) - {"share", "level"}
    for name in used:
        assert f"--{name}:" in theme_css()
    assert LIGHT.accent in theme_css()
    assert DARK.accent in theme_css()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_can_be_read_on_what_it_stands_on(theme: Theme) -> None:
    found = TINT.search(assets()["explorer.css"].content.decode())
    assert found is not None
    most = int(found[1]) / 100  # maximum fraction of ink behind the text of a highlighted token
    assert contrast(channels(theme.text), ramp(theme, most)) >= 4.5
    for name in ("text", "muted", "accent"):
        assert contrast(channels(theme._asdict()[name]), channels(theme.paper)) >= 4.5
    for name in ("edge", "accent", "ink"):  # borders and levels
        assert contrast(channels(theme._asdict()[name]), channels(theme.paper)) >= 3
