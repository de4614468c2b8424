"""The page and its assets, all from this package, in the colors of the drawings."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from ..views import Theme
from ..views._theme import DARK, LIGHT

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
PAGE = "page.html"
THEME = "theme.css"
_WEB = "foveal.web"
_PANEL, _PANEL_MARK = "panel.html", b"<!-- panel -->"  # the part that pages share


class Asset(NamedTuple):
    """A static file."""

    content: bytes
    media_type: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return every file of the page by name, with the theme colors."""
    colors = Asset(theme_css().encode(), TYPES[".css"])
    return {**assets_of(_WEB), THEME: colors}


def assets_of(package: str) -> dict[str, Asset]:
    """Return the files in a package's folder `assets`, by name. Pages with the panel mark get the answer panel
    inserted.
    """
    panel = (resources.files(_WEB) / "assets" / _PANEL).read_bytes()
    return {
        file.name: Asset(
            file.read_bytes().replace(_PANEL_MARK, panel),
            TYPES[file.name[file.name.rindex(".") :]],
        )
        for file in (resources.files(package) / "assets").iterdir()
        if file.name.endswith(tuple(TYPES)) and file.name != _PANEL
    }


def theme_css() -> str:
    """Return the theme colors as CSS variables, with a dark scheme."""
    return (
        f":root{{color-scheme:light dark;{_variables(LIGHT)}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}\n"
    )


def _variables(theme: Theme) -> str:
    names = ("paper", "text", "muted", "rule", "edge", "ink", "accent")
    colors = {name: theme._asdict()[name] for name in names} | {"link": theme.series[0]}
    return "".join(f"--{name}:{color};" for name, color in colors.items())
