"""An SVG on the paper of the views, in their light and dark colors."""

from collections.abc import Sequence

from markupsafe import Markup

from foveal.views._render import render_text

_TEMPLATE = (
    '{% extends "drawing.svg" %}{% block fits %} fits{% endblock %}'
    "{% block body %}{{ body }}{% endblock %}"
)


def svg(title: str, description: str, elements: Sequence[str], width: float, height: float) -> str:
    """Return a drawing of these elements. Screen readers read the title and the description."""
    return render_text(
        _TEMPLATE,
        title=title,
        description=description,
        width=f"{width:g}",
        height=f"{height:g}",
        body=Markup("\n".join(elements)),
    )
