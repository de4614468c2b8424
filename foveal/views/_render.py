"""Template rendering, which escapes all external text in one place."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ._text import legal
from ._theme import DARK, LIGHT


def _finalised(value: Any) -> Any:
    """Prepare a value for output: keep our own markup, and sanitize and escape everything else."""
    return legal(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("foveal.views"),
        autoescape=True,
        finalize=_finalised,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class Drawing(str):
    """The text of an SVG picture. A notebook displays the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def render(template: str, **values: Any) -> str:
    """Render a template of this package."""
    return _environment().get_template(template).render(values, light=LIGHT, dark=DARK)


def render_svg(template: str, **values: Any) -> Drawing:
    """Render a template of a picture."""
    return Drawing(render(template, **values))


def render_text(source: str, **values: Any) -> str:
    """Render the text of a template, which may extend a template of this package."""
    return _environment().from_string(source).render(values, light=LIGHT, dark=DARK)
