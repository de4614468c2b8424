"""Several drawings in one SVG, in rows."""

import re
from collections.abc import Sequence

from ._render import Drawing

_SIZE = re.compile(r'<svg [^>]*?width="([0-9.]+)" height="([0-9.]+)"')
_NAMESPACE = "http://www.w3.org/2000/svg"


def grid(drawings: Sequence[str], *, columns: int = 2) -> str:
    """Arrange drawings of this package in rows with a fixed number of columns.

    Args:
        drawings: SVG drawings of this package.
        columns: Number of drawings in a row.

    Returns:
        One SVG drawing.

    Examples:
        >>> from foveal.views import Series, curves
        >>> one = curves([Series(name="loss", points=((0, 3.0), (100, 1.5)))], title="Training")
        >>> grid([one, one, one]).count("<svg")
        4
    """
    sizes = [_size(drawing) for drawing in drawings]
    across = max((width for width, _ in sizes), default=0.0)
    placed, top = list[str](), 0.0
    for start in range(0, len(drawings), columns):
        row = drawings[start : start + columns]
        placed += [
            drawing.replace("<svg ", f'<svg x="{column * across:g}" y="{top:g}" ', 1)
            for column, drawing in enumerate(row)
        ]
        top += max(height for _, height in sizes[start : start + columns])
    width = across * min(columns, len(drawings))
    size = f'width="{width:g}" height="{top:g}" viewBox="0 0 {width:g} {top:g}"'
    return Drawing(f'<svg xmlns="{_NAMESPACE}" {size}>\n' + "\n".join(placed) + "\n</svg>\n")


def _size(drawing: str) -> tuple[float, float]:
    found = _SIZE.search(drawing)
    assert found is not None
    return float(found[1]), float(found[2])
