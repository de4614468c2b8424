"""Probability mass: for each step a bar of length 1, divided among the candidate tokens."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...tasks.explaining._explanation import END_NAME, ExplainedStep
from ...views._curves import Tick
from ...views._ink import Ink
from ...views._render import render
from ...views._tables import MOST_CELLS, Table
from ...views._text import bounded, named, note_width, number, short, width
from ...views._theme import tone

FONT = 13.0
MARGIN = 12.0
LENGTH = 260.0
ROW, GAP = 22.0, 6.0
LONGEST_LABEL = 9.0  # ems
MOST_STEPS = 300
FIGURE_ROOM = 58.0
# Ink of the first, second, ... alternative; later alternatives share the last value.
INKS = (0.72, 0.44, 0.28, 0.18, 0.12)


class Part(NamedTuple):
    """The probability of one token."""

    x: float
    width: float
    ink: Ink
    title: str
    text: str  # the token, if there is room for it
    chosen: bool


class Row(NamedTuple):
    """The bar of one step."""

    y: float
    label: str
    title: str
    figure: str
    parts: tuple[Part, ...]


def symbol_name(token: str) -> str:
    """Return a token as a view shows it."""
    return token or END_NAME


def _parts(step: ExplainedStep, left: float) -> tuple[Part, ...]:
    parts, x = list[Part](), left
    for rank, each in enumerate(step.alternatives):
        room = LENGTH * each.probability
        if room < 0.5:
            break
        share = INKS[min(rank, len(INKS) - 1)]
        text = short(symbol_name(each.token), LONGEST_LABEL)
        parts.append(
            Part(
                x=round(x, 2),
                width=round(max(room - 1, 0.5), 2),  # leave a thin gap between two parts
                ink=Ink(f"{share:g}", tone(share)),
                title=f"{named(symbol_name(each.token))}: {number(each.probability)}",
                text=text if FONT * width(text) + 6 <= room else "",
                chosen=each.token == step.token,
            )
        )
        x += room
    return tuple(parts)


def mass(
    steps: Sequence[ExplainedStep],
    *,
    names: Sequence[str] | None = None,
    title: str = "Probability of the candidate tokens",
) -> str:
    """Draw a bar for each step, with the chosen token outlined; the blank part belongs to all tokens that are not
    listed. A step is labeled by its token, or by `names` if given.
    """
    drawn = steps[:MOST_STEPS]
    names = [symbol_name(step.token) for step in drawn] if names is None else names[:MOST_STEPS]
    labels = [short(name, LONGEST_LABEL) for name in names]
    left = MARGIN + max((FONT * width(label) for label in labels), default=0.0) + 8
    rows = tuple(
        Row(
            y=MARGIN + index * (ROW + GAP),
            label=label,
            title=named(name),
            figure=number(step.probability),
            parts=_parts(step, left),
        )
        for index, (step, label, name) in enumerate(zip(drawn, labels, names, strict=True))
    )
    bottom = MARGIN + max(len(rows), 1) * (ROW + GAP)
    notes = ["outlined: the chosen token; blank: all other tokens together"]
    if len(steps) > len(drawn):
        notes.append(f"{len(steps) - len(drawn)} more steps are not shown")
    note = "; ".join(notes)
    least = min(drawn, key=lambda step: step.probability, default=None)
    said = "The output has no step."
    if least is not None:
        said = (
            f"{len(steps)} steps. Least confident: {named(symbol_name(least.token))} with probability "
            f"{number(least.probability)}."
        )
    ticks = [Tick(round(left + LENGTH * share / 4, 1), f"{share / 4:g}") for share in range(5)]
    return render(
        "mass.svg",
        title=title,
        description=said,
        width=math.ceil(max(left + LENGTH + FIGURE_ROOM, 2 * MARGIN + note_width(note))),
        height=math.ceil(bottom + 34 + MARGIN),
        rows=rows,
        ticks=ticks if rows else [],
        left=left,
        length=LENGTH,
        bottom=bottom,
        note=note,
    )


def mass_table(steps: Sequence[ExplainedStep], *, names: Sequence[str] | None = None) -> Table:
    """List the same probabilities as numbers, with a row for each step."""
    most = max((len(step.alternatives) for step in steps), default=0)
    most = min(most, 8)
    rows = list[tuple[str, ...]]()
    for index, step in enumerate(steps[: MOST_CELLS // (most + 3)]):
        listed = [
            f"{named(symbol_name(each.token))} {number(each.probability)}"
            for each in step.alternatives[:most]
        ]
        rows.append(
            (
                *(() if names is None else (bounded(names[index]),)),
                bounded(symbol_name(step.token)),
                number(step.probability),
                *listed,
                *[""] * (most - len(listed)),
            )
        )
    ranks = (f"{rank}." for rank in range(1, most + 1))
    return Table(
        caption="Candidate tokens of each step",
        columns=(*(() if names is None else ("step",)), "chosen", "probability", *ranks),
        rows=tuple(rows),
        folded=True,
    )
