"""K-step attention over facts: a row for each fact, a column for each step, with the best chain.

    weights[k][s] = p(step k reads fact s)

The chain is drawn as arrows between the steps.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ..attention import AttentionTrace
from ._ink import Ink, Scale, check_weights, heading, scale_of, strongest
from ._render import render_svg
from ._text import named, number, short, width

FONT = 13.0
MARGIN = 14.0
LONGEST_FACT, LONGEST_STEP = 40.0, 8.0  # ems
ROW, COLUMN, RADIUS = 34.0, 92.0, 13.0


class Disc(NamedTuple):
    """The weight of one fact at one step."""

    x: float
    y: float
    ink: Ink
    title: str
    text: str
    best: bool


class Link(NamedTuple):
    """An arrow between two discs of the best chain."""

    path: str
    arrow: str


class Label(NamedTuple):
    """A fact or a step."""

    x: float
    y: float
    text: str
    title: str


def _place(left: float, step: int, fact: int) -> tuple[float, float]:
    return round(left + (step + 0.5) * COLUMN, 1), round(MARGIN + 30 + (fact + 0.5) * ROW, 1)


def _discs(trace: AttentionTrace, left: float, scale: Scale) -> Iterator[Disc]:
    for step, row in enumerate(trace.weights):
        for fact, weight in enumerate(row):
            best = trace.best is not None and trace.best[step][fact]
            if weight < scale.least and not best:
                continue
            yield Disc(
                *_place(left, step, fact),
                scale.ink(weight),
                f"{named(trace.targets[step])} reads {named(trace.sources[fact])}: {number(weight)}",
                f"{weight:.2f}".removeprefix("0") if weight >= 0.005 else "",
                best,
            )


def _links(discs: list[Disc]) -> Iterator[Link]:
    """Return curves between successive discs of the best chain, with horizontal ends."""
    for here, there in pairwise(sorted(disc for disc in discs if disc.best)):
        start, end = here.x + RADIUS + 2, there.x - RADIUS - 9
        middle = (start + end) / 2
        yield Link(
            f"M{start:.1f} {here.y}C{middle:.1f} {here.y} {middle:.1f} {there.y} {end:.1f} {there.y}",
            f"M{end + 7:.1f} {there.y}l-9 -5v10z",
        )


def chain(trace: AttentionTrace, *, title: str | None = None) -> str:
    """Draw steps over facts, with the most probable chain of the trace as arrows.

    Ink shows the probability of each fact at each step.

    Args:
        trace: Trace whose queries are steps and whose positions are facts.
        title: Title of the drawing; by default, a description with the kind of attention.

    Returns:
        An SVG drawing.

    Raises:
        ValueRangeError: A weight is negative or not finite.

    Examples:
        >>> from foveal.attention import AttentionTrace
        >>> trace = AttentionTrace(
        ...     kind="k-step", sources=("Ann is in Rome.", "Bob is with Ann."), targets=("1", "2"),
        ...     weights=((0.1, 0.9), (0.8, 0.2)), best=((False, True), (True, False)))
        >>> chain(trace).count('class="link"')
        1
    """
    check_weights("chain", trace)
    facts = [short(fact, LONGEST_FACT) for fact in trace.sources]
    left = MARGIN + FONT * max(map(width, facts), default=0.0) + 8
    scale = scale_of(weight for row in trace.weights for weight in row)
    discs = list(_discs(trace, left, scale))
    bottom = MARGIN + 30 + len(facts) * ROW
    steps = [
        Label(_place(left, step, 0)[0], MARGIN + 16, short(name, LONGEST_STEP), named(name))
        for step, name in enumerate(trace.targets)
    ]
    rows = [
        Label(round(left - 8, 1), _place(left, 0, fact)[1] + 4.5, label, named(trace.sources[fact]))
        for fact, label in enumerate(facts)
    ]
    return render_svg(
        "chain.svg",
        title=heading(trace, title, "Facts read step by step"),
        description=strongest(trace),
        width=math.ceil(max(left + len(steps) * COLUMN + MARGIN, 290)),
        height=math.ceil(bottom + 64),
        discs=discs,
        radius=RADIUS,
        links=list(_links(discs)),
        steps=steps,
        rows=rows,
        scale=scale,
        legend_y=bottom + 14,
        note="" if trace.best is None else "arrows: the most probable chain",
        empty="" if discs else "no facts" if not facts else "no steps",
    )
