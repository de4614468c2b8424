"""Templates to text: everything that comes from outside is escaped, in one place."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ._text import legal
from ._theme import DARK, LIGHT


def _finalised(value: Any) -> Any:
    """A value on its way out; markup of our own stands, the rest is made legal and escaped."""
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


def render(template: str, **values: Any) -> str:
    """Fill a template of this package."""
    return _environment().get_template(template).render(values, light=LIGHT, dark=DARK)
