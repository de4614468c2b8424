"""Curves of a run: values against steps.

Colors follow the reader's light or dark scheme, and one page can contain several drawings.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import ShapeError
from ._render import render_svg
from ._text import named, short, width
from ._theme import LIGHT

PLOT_WIDTH, PLOT_HEIGHT = 360.0, 190.0
LEFT, TOP, RIGHT = 62.0, 34.0, 18.0
FONT = 13.0
LONGEST_NAME, LONGEST_AXIS = 18.0, 28.0  # ems
MOST_POINTS = 1200  # maximum for all curves together
MARKED = 40  # curves with at most this many points show each as a dot
# Gray print distinguishes curves only by these dashes, so each curve has its own.
DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "14 4", "9 3 2 3 2 3", "4 4", "14 3 5 3")

Point = tuple[float | int, float | int]  # a step and its value


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One curve: a name and its (step, value) points, in the order of the steps."""

    name: str
    points: tuple[Point, ...]


class Dot(NamedTuple):
    """A point with a hover text."""

    x: float
    y: float
    title: str


class Tick(NamedTuple):
    """A number on an axis, with its position."""

    at: float
    text: str


class Curve(NamedTuple):
    """A curve and its legend entry."""

    path: str
    dots: tuple[Dot, ...]
    marked: bool
    color: int
    dash: str
    y: float
    label: str
    title: str
    last: str


class Axis(NamedTuple):
    """An axis from `low` to `high` over a number of pixels from `start`."""

    low: float
    high: float
    start: float
    length: float

    def at(self, value: float) -> float:
        """Return the pixel of a number."""
        return round(self.start + self.length * (value - self.low) / (self.high - self.low), 1)


def thinned(points: Sequence[Point], limit: int) -> list[Point]:
    """Reduce a curve to about `limit` points.

    The result has the minimum and maximum of each window, values that are not a number, and both ends.

    Args:
        points: Pairs of a step and a value, by step.
        limit: Number of points up to which a curve is kept whole.

    Returns:
        The points that are kept, in order.

    Examples:
        >>> len(thinned([(step, step % 7) for step in range(1000)], limit=100))
        100
    """
    if len(points) <= limit:
        return list(points)
    kept = {0, len(points) - 1}
    for stretch in np.array_split(np.arange(1, len(points) - 1), max((limit - 2) // 2, 1)):
        values = np.array([points[index][1] for index in stretch])
        finite = np.isfinite(values)
        kept.add(int(stretch[np.where(finite, values, np.inf).argmin()]))
        kept.add(int(stretch[np.where(finite, values, -np.inf).argmax()]))
    return [points[index] for index in sorted(kept)]


def figure_of(value: float | int) -> str:
    """Format a value of any size with four digits."""
    if math.isnan(value):
        return "not a number"
    return f"{value:.4g}"


def _ticks(values: list[float], count: int) -> tuple[list[float], float, float]:
    """Return round numbers that cover the values, and the range that they span."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:  # one number: some room around it
        room = abs(low) / 10 or 1.0
        low, high = low - room, high + room
    step = _round_step((high - low) / count)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, last + 1)], low, high


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is at least this large."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= least * (1 - 1e-9))


def _step(step: float, highest: float) -> str:
    """Abbreviate a large step: 20k, 1.5M."""
    unit, sign = (1e6, "M") if highest >= 1e6 else (1e3, "k") if highest >= 1e4 else (1.0, "")
    return f"{step / unit:g}{sign}" if step else "0"


def _step_axis(steps: list[float]) -> tuple[Axis, list[Tick]]:
    ticks, low, high = _ticks(steps, 6)
    axis = Axis(low, high, LEFT, PLOT_WIDTH)
    inside = [tick for tick in ticks if low <= tick <= high]
    return axis, [Tick(axis.at(tick), _step(tick, high)) for tick in inside]


def _value_axis(values: list[float]) -> tuple[Axis, list[Tick]]:
    ticks, low, high = _ticks(values, 5)
    axis = Axis(min(low, ticks[0]), max(high, ticks[-1]), TOP + PLOT_HEIGHT, -PLOT_HEIGHT)
    return axis, [Tick(axis.at(tick), f"{tick:.6g}") for tick in ticks]


def _curve(series: Series, index: int, limit: int, across: Axis, up: Axis, x_label: str) -> Curve:
    points = thinned(series.points, limit)
    path, dots, broken = list[str](), list[Dot](), True
    for step, value in points:
        if not (math.isfinite(step) and math.isfinite(value)):
            broken = True
            continue
        x, y = across.at(float(step)), up.at(float(value))
        path.append(f"{'M' if broken else 'L'}{x} {y}")
        dots.append(
            Dot(x, y, f"{named(series.name)} at {x_label} {figure_of(step)}: {figure_of(value)}")
        )
        broken = False
    return Curve(
        path="".join(path),
        dots=tuple(dots),
        marked=len(dots) <= MARKED,
        color=index % len(LIGHT.series),
        dash=DASHES[index],
        y=TOP + PLOT_HEIGHT + 62 + 20 * index,
        label=short(series.name, LONGEST_NAME),
        title=named(series.name),
        last=f"last {figure_of(series.points[-1][1])}" if series.points else "no points",
    )


def _finite(series: Sequence[Series]) -> Iterator[tuple[float, float]]:
    for each in series:
        for step, value in each.points:
            if math.isfinite(step) and math.isfinite(value):
                yield float(step), float(value)


def curves(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str = "step",
    y_label: str = "",
    behind: Sequence[Series] = (),
) -> str:
    """Draw curves with a legend. Each curve has its own dash and color.

    Points that are not finite break a curve. Long curves are thinned to their minima and maxima. Background
    curves are thin, and show their names only on hover.

    Args:
        series: Curves with a legend, at most one for each dash.
        title: Title of the drawing.
        x_label: Label of the horizontal axis.
        y_label: Label of the vertical axis; empty for none.
        behind: Background curves.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: There are more series than dashes.

    Examples:
        >>> loss = Series(name="loss", points=((0, 3.0), (100, 1.5), (200, 1.2)))
        >>> curves([loss], title="Training").count("<circle")
        3
    """
    if len(series) > len(DASHES):
        raise ShapeError(
            f"curves: expected at most {len(DASHES)} series, got {len(series)}. "
            f"Draw them in several pictures."
        )
    finite = list(_finite([*series, *behind]))
    across, x_ticks = _step_axis([step for step, _ in finite])
    up, y_ticks = _value_axis([value for _, value in finite])
    limit = MOST_POINTS // max(len(series) + len(behind), 1)
    drawn = [_curve(each, index, limit, across, up, x_label) for index, each in enumerate(series)]
    thin = [_curve(each, 0, limit, across, up, x_label) for each in behind]
    longest = max((FONT * width(curve.label) for curve in drawn), default=0.0)
    said = "; ".join(
        f"{curve.title}: {len(each.points)} points, {curve.last}"
        for curve, each in zip(drawn, series, strict=True)
    )
    return render_svg(
        "curves.svg",
        title=title,
        description=f"{said}." if said else "No curve.",
        width=math.ceil(LEFT + PLOT_WIDTH + RIGHT),
        height=math.ceil(TOP + PLOT_HEIGHT + 56 + 20 * len(drawn)),
        curves=drawn,
        behind=thin,
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        left=LEFT,
        right=LEFT + PLOT_WIDTH,
        top=TOP,
        bottom=TOP + PLOT_HEIGHT,
        x_label=short(x_label, LONGEST_AXIS),
        y_label=short(y_label, LONGEST_AXIS) if y_label else "",
        last_x=LEFT + 46 + longest,
        empty=not finite,
    )
