"""Parallel axes: things with many numbers, one line for each across one axis for each number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ShapeError
from ._render import render
from ._text import bounded, named, short, width

GAP, PLOT_HEIGHT = 112.0, 240.0
TOP, SIDE = 58.0, 102.0
FONT, SMALL_FONT = 13.0, 11.0
LONGEST_LABEL = 7.5  # ems, between two axes
LONGEST_NAME = 40.0
MOST_LINES = 400
# What a line of each group looks like: its class, width, dash and opacity. Gray print tells them apart.
GROUPS = (
    ("best", 3.5, "", 1.0),
    ("s0", 2.5, "7 3", 1.0),
    ("s0", 1.25, "", 0.75),
    ("s0", 1.25, "2 3", 0.6),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelAxis:
    """One axis: its name, and texts at places from 0, the bottom, to 1."""

    name: str
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelLine:
    """One line: its name, where it crosses each axis (None: it does not) and with which value, and its
    group, 0 the strongest.
    """

    name: str
    places: tuple[float | None, ...]
    values: tuple[str, ...]
    group: int


class Mark(NamedTuple):
    """A text and where it stands."""

    x: float
    y: float
    text: str
    title: str


class Column(NamedTuple):
    """An axis as it is drawn."""

    x: float
    label: Mark
    ticks: tuple[Mark, ...]


class Drawn(NamedTuple):
    """A line as it is drawn."""

    path: str
    title: str
    look: tuple[str, float, str, float]


class Entry(NamedTuple):
    """A line of the legend."""

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
    """Lines across axes, those of the first group above all others.

    Args:
        axes: from left to right.
        lines: each with a place on every axis.
        title: of the drawing.
        groups: what the groups of lines are called, at most four.
    """
    _check(axes, lines, groups)
    columns = [_column(axis, index) for index, axis in enumerate(axes)]
    ordered = sorted(lines, key=lambda line: -line.group)  # the strongest last, and so on top
    bottom = TOP + PLOT_HEIGHT
    entries = [
        Entry(bottom + 34 + 20 * index, short(name, LONGEST_NAME), named(name), GROUPS[index])
        for index, name in enumerate(groups)
    ]
    longest = max((FONT * width(entry.text) for entry in entries), default=0.0)
    across = 2 * SIDE + GAP * max(len(axes) - 1, 0)
    return render(
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
    # Names stand in two heights by turns, so that long ones have room.
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
