"""Parallel coordinates: one line for each item, across one axis for each of its numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ShapeError
from ._render import render_svg
from ._text import bounded, named, short, width

GAP, PLOT_HEIGHT = 112.0, 240.0
TOP, SIDE = 58.0, 102.0
FONT, SMALL_FONT = 13.0, 11.0
LONGEST_LABEL = 7.5  # ems, between two axes
LONGEST_NAME = 40.0
MOST_LINES = 400
# The class, width, dash and opacity of the lines of each group, distinguishable in gray print.
GROUPS = (
    ("best", 3.5, "", 1.0),
    ("s0", 2.5, "7 3", 1.0),
    ("s0", 1.25, "", 0.75),
    ("s0", 1.25, "2 3", 0.6),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelAxis:
    """One axis: its name, and labels at heights from 0, the bottom, to 1."""

    name: str
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelLine:
    """One line: its name, its height and value on each axis (None if it skips the axis), and its group, 0 the
    strongest.
    """

    name: str
    places: tuple[float | None, ...]
    values: tuple[str, ...]
    group: int


class Mark(NamedTuple):
    """A text and its position."""

    x: float
    y: float
    text: str
    title: str


class Column(NamedTuple):
    """The geometry of an axis."""

    x: float
    label: Mark
    ticks: tuple[Mark, ...]


class Drawn(NamedTuple):
    """The geometry of a line."""

    path: str
    title: str
    look: tuple[str, float, str, float]


class Entry(NamedTuple):
    """A legend entry."""

    y: float
    text: str
    title: str
    look: tuple[str, float, str, float]


def parallel(
    axes: Sequence[ParallelAxis],
    lines: Sequence[ParallelLine],
    *,
    title: str,
    groups: Sequence[str],
) -> str:
    """Draw lines across axes, with the lines of the first group on top.

    Args:
        axes: The axes, from left to right.
        lines: The lines, each with a height on every axis.
        title: The title of the drawing.
        groups: The names of the groups of lines, at most four.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: There are too many groups or lines, or a line does not have one height and value for each axis.
    """
    _check(axes, lines, groups)
    columns = [_column(axis, index) for index, axis in enumerate(axes)]
    ordered = sorted(lines, key=lambda line: -line.group)  # the strongest last, on top
    bottom = TOP + PLOT_HEIGHT
    entries = [
        Entry(bottom + 34 + 20 * index, short(name, LONGEST_NAME), named(name), GROUPS[index])
        for index, name in enumerate(groups)
    ]
    longest = max((FONT * width(entry.text) for entry in entries), default=0.0)
    across = 2 * SIDE + GAP * max(len(axes) - 1, 0)
    return render_svg(
        "parallel.svg",
        title=title,
        description=f"{len(lines)} lines across {len(axes)} axes: "
        + ", ".join(named(axis.name) for axis in axes)
        + ".",
        width=math.ceil(max(across, 14 + 40 + longest + 14)),
        height=math.ceil(bottom + 34 + 20 * len(entries)),
        columns=columns,
        top=TOP,
        bottom=bottom,
        lines=[_drawn(line, axes) for line in ordered],
        entries=entries,
    )


def _check(
    axes: Sequence[ParallelAxis], lines: Sequence[ParallelLine], groups: Sequence[str]
) -> None:
    if len(groups) > len(GROUPS) or len(lines) > MOST_LINES:
        raise ShapeError(
            f"parallel: expected at most {len(GROUPS)} groups and {MOST_LINES} lines, got {len(groups)} "
            f"and {len(lines)}. Draw them in several pictures."
        )
    for line in lines:
        sizes = len(line.places), len(line.values)
        if sizes != (len(axes), len(axes)) or not 0 <= line.group < len(groups):
            raise ShapeError(
                f"parallel: expected {len(axes)} places and values and a group below {len(groups)}, got "
                f"{sizes[0]}, {sizes[1]} and group {line.group} for {line.name!r}. Give None where a line "
                f"has no place."
            )


def _x(index: int) -> float:
    return SIDE + GAP * index


def _y(place: float) -> float:
    return round(TOP + PLOT_HEIGHT * (1 - place), 1)


def _column(axis: ParallelAxis, index: int) -> Column:
    x = _x(index)
    # Names alternate between two heights, to leave room for long ones.
    label = Mark(
        x, TOP - (34 if index % 2 else 14), short(axis.name, 2 * LONGEST_LABEL), named(axis.name)
    )
    ticks = tuple(
        Mark(x + 6, _y(place) + 4, short(text, LONGEST_LABEL), named(text))
        for place, text in axis.ticks
    )
    return Column(x, label, ticks)


def _drawn(line: ParallelLine, axes: Sequence[ParallelAxis]) -> Drawn:
    path, broken = list[str](), True
    for index, place in enumerate(line.places):
        if place is None:
            broken = True
        else:
            path.append(f"{'M' if broken else 'L'}{_x(index)} {_y(place)}")
            broken = False
    said = ", ".join(
        f"{named(axis.name)} {bounded(value)}"
        for axis, value in zip(axes, line.values, strict=True)
    )
    return Drawn("".join(path), f"{named(line.name)}: {said}", GROUPS[line.group])
