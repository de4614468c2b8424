"""Dot charts of figures in results/: a line for each comparison, a mark for each figure, with its range.

Labels are above their lines, which keeps a chart narrow enough for a phone. Each series has its own shape and
color, and remains distinct in gray print. The colors come from foveal.views.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from foveal.views._render import render_text
from foveal.views._text import SMALL, width

TEMPLATE = Path(__file__).parent / "dots.svg"
LEFT, RIGHT, TOP, WIDTH = 14.0, 456.0, 8.0, 470
FONT = 13.0
LABEL, DOT, GAP = 18.0, 13.0, 8.0  # heights: of a label, of a mark, and between two lines
SHAPES = ("circle", "square", "diamond", "cross")


class Figure(NamedTuple):
    """A value of a series, and its range if it has one."""

    series: int
    value: float
    low: float | None = None
    high: float | None = None


class Line(NamedTuple):
    """A comparison: its label, a note at the right, and its figures."""

    label: str
    figures: Sequence[Figure]
    note: str = ""


class _Dot(NamedTuple):
    x: float
    y: float
    shape: str
    color: int
    path: str  # of the range


def dots(
    lines: Sequence[Line],
    *,
    title: str,
    series: Sequence[str],
    x_label: str,
    ticks: Sequence[float],
    zero: float | None = None,
) -> str:
    """Draw a chart as SVG.

    Args:
        lines: from top to bottom.
        title: the name of the drawing, for screen readers.
        series: the legend; a figure refers to it by its index.
        x_label: the name of the axis.
        ticks: numbers on the axis, which goes from the first to the last. A range beyond them ends in an arrow.
        zero: a number with a strong line, such as no difference.
    """
    placed, y = list[dict[str, object]](), TOP
    for line in lines:
        _check_width(line)
        found = [
            _dot(figure, y + LABEL + DOT * (number + 0.5), ticks)
            for number, figure in enumerate(line.figures)
        ]
        placed.append({"label": line.label, "note": line.note, "y": y + LABEL - 4, "dots": found})
        y += LABEL + DOT * len(found) + GAP
    legend = [
        {"text": name, "y": y + 58 + 20 * number, "shape": SHAPES[number], "color": number}
        for number, name in enumerate(series)
    ]
    return render_text(
        TEMPLATE.read_text(encoding="utf-8"),
        title=title,
        description=" ".join(_sentence(line, series) for line in lines),
        width=WIDTH,
        height=round(y + 48 + 20 * len(legend)),
        lines=placed,
        ticks=[{"x": _across(tick, ticks), "text": f"{tick:g}"} for tick in ticks],
        zero=None if zero is None else _across(zero, ticks),
        top=TOP,
        bottom=y,
        left=LEFT,
        right=RIGHT,
        x_label=x_label,
        legend=legend,
    )


def _check_width(line: Line) -> None:
    room = FONT * width(line.label) + SMALL * width(line.note)
    if room > RIGHT - LEFT:
        raise ValueError(
            f"dots: {line.label!r} and {line.note!r} need {room:.0f} pixels, and there are "
            f"{RIGHT - LEFT:.0f}. Shorten one of them."
        )


def _across(value: float, ticks: Sequence[float]) -> float:
    """The pixel of a number; the axis leaves room for half a mark at both ends."""
    share = (value - ticks[0]) / (ticks[-1] - ticks[0])
    return round(LEFT + 6 + share * (RIGHT - LEFT - 12), 1)


def _dot(figure: Figure, y: float, ticks: Sequence[float]) -> _Dot:
    if not ticks[0] <= figure.value <= ticks[-1]:
        raise ValueError(f"dots: {figure.value} is not between {ticks[0]} and {ticks[-1]}.")
    path = ""
    if figure.low is not None and figure.high is not None:
        low, high = max(figure.low, ticks[0]), min(figure.high, ticks[-1])
        path = f"M{_across(low, ticks)} {y}H{_across(high, ticks)}"
        if low > figure.low:
            path += f"M{_across(low, ticks) + 5} {y - 4}l-5 4l5 4"
        if high < figure.high:
            path += f"M{_across(high, ticks) - 5} {y - 4}l5 4l-5 4"
    shape = SHAPES[figure.series]
    return _Dot(_across(figure.value, ticks), y, shape, figure.series, path)


def _sentence(line: Line, series: Sequence[str]) -> str:
    """A line of the chart in words."""
    said = "; ".join(f"{series[each.series]} {each.value:.1f}" for each in line.figures)
    return f"{line.label}: {said}."
