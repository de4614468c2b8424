"""A vector field over the plane: an arrow from each point to the next, over a grid of shades."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import ShapeError
from ._render import render_svg
from ._text import number, short

SIDE = 420.0
LEFT, TOP = 46.0, 14.0
HEAD = 4.0  # pixels of an arrow head
LONGEST = 0.85  # of the distance between two points, for the longest arrow

Pair = Sequence[float]


class Cell(NamedTuple):
    """The shade around one point."""

    x: float
    y: float
    opacity: float
    title: str


class Arrow(NamedTuple):
    """A line and its head."""

    line: str
    head: str


class Frame(NamedTuple):
    """The square of the plane that is drawn."""

    low: float
    high: float

    def at(self, point: Pair) -> tuple[float, float]:
        """Return the pixel of a point; the second coordinate points up."""
        scale = SIDE / (self.high - self.low)
        return LEFT + scale * (point[0] - self.low), TOP + scale * (self.high - point[1])


def vector_field(
    points: Sequence[Pair],
    targets: Sequence[Pair],
    *,
    shades: Sequence[float],
    marks: Sequence[Pair] = (),
    title: str,
    shade_label: str,
) -> str:
    """Draw an arrow from each point of a square grid toward its target, over shades.

    The longest arrow fills a cell of the grid; the others are in proportion to the square root of their length.

    Args:
        points: Points of a square grid in the plane.
        targets: The point that each of them moves to.
        shades: A value for each point; the largest has the darkest cell.
        marks: Points that are marked with a circle.
        title: Title of the drawing.
        shade_label: Meaning of the shades, for the legend.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: The points do not form a square grid, or the number of targets or shades differs.

    Examples:
        >>> grid = [(x, y) for x in (0.0, 1.0) for y in (0.0, 1.0)]
        >>> drawing = vector_field(
        ...     grid, [(0.0, 0.0)] * 4, shades=[0.0, 1.0, 1.0, 2.0], title="To 0", shade_label="level")
        >>> drawing.count('class="arrow"')
        3
    """
    side = math.isqrt(len(points))
    if side < 2 or side * side != len(points) or not len(points) == len(targets) == len(shades):
        raise ShapeError(
            f"vector_field: expected the points of a square grid with a target and a shade for each, got "
            f"{len(points)} points, {len(targets)} targets and {len(shades)} shades. Give one of each for all "
            f"combinations of the coordinates."
        )
    values = [value for point in points for value in point]
    gap = (max(values) - min(values)) / (side - 1)
    frame = Frame(min(values) - gap / 2, max(values) + gap / 2)
    lowest, highest = min(shades), max(shades)
    ticks = [min(values), (min(values) + max(values)) / 2, max(values)]
    return render_svg(
        "vector_field.svg",
        title=title,
        description=f"{len(points)} arrows and {len(marks)} marked points; {shade_label} from "
        f"{number(lowest)} to {number(highest)}.",
        width=math.ceil(LEFT + SIDE + 14),
        height=math.ceil(TOP + SIDE + 76),
        cells=_cells(points, shades, frame, shade_label),
        size=round(SIDE / side, 2),
        arrows=_arrows(points, targets, frame, gap),
        marks=[tuple(round(value, 1) for value in frame.at(mark)) for mark in marks],
        across=[(round(frame.at((tick, tick))[0], 1), f"{tick:g}") for tick in ticks],
        up=[(round(frame.at((tick, tick))[1], 1), f"{tick:g}") for tick in ticks],
        left=LEFT,
        bottom=TOP + SIDE,
        label=short(shade_label, 28.0),
        low=f"{lowest:.3g}",
        high=f"{highest:.3g}",
        steps=[round(step / 10, 1) for step in range(11)],
    )


def _cells(points: Sequence[Pair], shades: Sequence[float], frame: Frame, label: str) -> list[Cell]:
    lowest, spread = min(shades), max(shades) - min(shades)
    half = SIDE / math.isqrt(len(points)) / 2
    cells = list[Cell]()
    for point, shade in zip(points, shades, strict=True):
        x, y = frame.at(point)
        share = (shade - lowest) / spread if spread else 0.0
        title = f"({point[0]:.3g}, {point[1]:.3g}): {label} {shade:.3g}"
        cells.append(Cell(round(x - half, 1), round(y - half, 1), round(0.75 * share, 3), title))
    return cells


def _arrows(
    points: Sequence[Pair], targets: Sequence[Pair], frame: Frame, gap: float
) -> list[Arrow]:
    lengths = [math.dist(point, target) for point, target in zip(points, targets, strict=True)]
    longest = max(lengths)
    arrows = list[Arrow]()
    for point, target, length in zip(points, targets, lengths, strict=True):
        if length <= 1e-6 * longest or not longest:
            continue
        reach = LONGEST * gap * math.sqrt(length / longest) / length
        tip = [p + reach * (t - p) for p, t in zip(point, target, strict=True)]
        (x, y), (to_x, to_y) = frame.at(point), frame.at(tip)
        size = math.hypot(to_x - x, to_y - y)
        along = ((to_x - x) / size, (to_y - y) / size)
        back = (to_x - HEAD * along[0], to_y - HEAD * along[1])
        wing = (-along[1] * HEAD / 2, along[0] * HEAD / 2)
        arrows.append(
            Arrow(
                f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}",
                f"M{to_x:.1f} {to_y:.1f}L{back[0] + wing[0]:.1f} {back[1] + wing[1]:.1f}"
                f"L{back[0] - wing[0]:.1f} {back[1] - wing[1]:.1f}z",
            )
        )
    return arrows
