"""A text whose tokens are colored by a number each, such as the activation of one unit.

    positive   one color     negative   another color     0   none

Reference: Karpathy et al. 2015, figure 2.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import ShapeError, ValueRangeError
from ._ink import MOST_MARKS
from ._render import render_svg
from ._text import named, short, width

FONT, MARGIN, LINE = 14.0, 14.0, 24.0
LINE_WIDTH = 620.0
LONGEST_WORD = 24.0  # ems
PADDING = 4.0  # around a word; a character has less
MOST_COLOR = 0.62  # opacity of the largest value: text stays readable on it
STEPS = 7


class Colored(NamedTuple):
    """A token on its color."""

    x: float
    y: float
    width: float
    color: str
    opacity: float
    text: str
    title: str


def colored_text(
    tokens: Sequence[str], values: Sequence[float], *, title: str, top: float = 1.0
) -> str:
    """Draw a text with a color behind each token: one color for positive values, another for negative ones.

    Args:
        tokens: Tokens in order.
        values: One number for each token.
        title: Title of the drawing, for example the name of the unit.
        top: Absolute value that gets full color; larger values get the same color.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: If the numbers of tokens and values differ, or there are too many to draw.
        ValueRangeError: If a value is not finite, or `top` is not positive.

    Examples:
        >>> colored_text("a cat", (0.0, 0.5, -1.0, 0.2, 0.1), title="unit 3").count('class="token ')
        5
    """
    if len(tokens) != len(values) or len(tokens) > MOST_MARKS:
        raise ShapeError(
            f"colored_text: expected one value for each of at most {MOST_MARKS} tokens, got {len(tokens)} tokens "
            f"and {len(values)} values. Pass both for the same part of the text."
        )
    if not (top > 0 and all(map(math.isfinite, values))):
        raise ValueRangeError(
            "colored_text: values must be finite and top must be positive, got other values. Not a number means "
            "that the model has diverged: train it again with a lower learning rate."
        )
    marks = tuple(_marks(tokens, values, top))
    bottom = max((mark.y for mark in marks), default=0.0) + LINE
    ramp = tuple((step - STEPS // 2) / (STEPS // 2) for step in range(STEPS))
    return render_svg(
        "colored_text.svg",
        title=title,
        description=_extremes(tokens, values),
        width=math.ceil(2 * MARGIN + LINE_WIDTH),
        height=math.ceil(bottom + 40),
        marks=marks,
        line=LINE,
        bottom=bottom,
        ramp=[_color(value, 1.0) for value in ramp],
        top=f"{top:g}",
    )


def _marks(tokens: Sequence[str], values: Sequence[float], top: float) -> Iterator[Colored]:
    x, y = MARGIN, MARGIN + 22.0
    padding = 1.0 if all(len(token) <= 1 for token in tokens[1:]) else PADDING
    for token, value in zip(tokens, values, strict=True):
        label = short(token, LONGEST_WORD)
        room = round(FONT * width(label) + 2 * padding, 1)
        if x > MARGIN and x + room > MARGIN + LINE_WIDTH:
            x, y = MARGIN, y + LINE
        yield Colored(
            round(x, 1), y, room, *_color(value, top), label, f"{named(token)}: {value:.2f}"
        )
        x += room


def _color(value: float, top: float) -> tuple[str, float]:
    """Return the class and the opacity of a value."""
    return ("ink" if value >= 0 else "mark"), round(MOST_COLOR * min(1.0, abs(value) / top), 3)


def _extremes(tokens: Sequence[str], values: Sequence[float]) -> str:
    if not tokens:
        return "There is nothing to show."
    low, high = (pick(range(len(values)), key=values.__getitem__) for pick in (min, max))
    return (
        f"Largest value {values[high]:.2f} at {named(tokens[high])}, "
        f"smallest value {values[low]:.2f} at {named(tokens[low])}."
    )
