"""Dependency arcs: the probability of every head as ink, with the most probable tree on top.

    weights[d][h] = p(h is the head of d),     1 - sum_h weights[d][h] = p(d heads the sentence)

Syntactic attention computes these probabilities (Kim et al. 2017, section 3.2).
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from ..attention import AttentionTrace
from ..errors import ShapeError, ValueRangeError
from ._ink import check_weights, heading, scale_of
from ._render import render_svg
from ._text import named, note_width, number, right_to_left, short, width

FONT = 14.0
MARGIN = 14.0
LONGEST_WORD = 14.0  # ems
GAP, NARROWEST = 16.0, 44.0
LEAST = 0.01  # fainter arcs cannot be seen
TALLEST, STEP = 260.0, 26.0  # pixels: for all arcs, and for each word that an arc spans
ROOT_LENGTH = 30.0
MOST_NUMBERED = 14  # words for which the probabilities of the best tree are written
TOLERANCE = 1e-3  # for rows that sum to a little over 1 in float32


class Arc(NamedTuple):
    """A possible head of a word; `path` runs from the head to the word."""

    path: str
    width: float
    opacity: float
    title: str
    best: bool
    arrow: str  # the head of the arrow, for the best tree
    number: str
    x: float  # position of the number
    y: float


class Word(NamedTuple):
    """A word under the arcs."""

    x: float
    text: str
    title: str


def _centers(words: Sequence[str], *, mirrored: bool) -> list[float]:
    """Return the center of each word on the line."""
    rooms = [max(FONT * width(word) + GAP, NARROWEST) for word in words]
    ends = list(accumulate(rooms, initial=MARGIN))
    middles = [start + room / 2 for start, room in zip(ends, rooms, strict=False)]
    return [ends[-1] + MARGIN - middle for middle in middles] if mirrored else middles


def _arrow(x: float, y: float) -> str:
    return f"M{x:.1f} {y:.1f}l-4.5 -9h9z"


class _Page(NamedTuple):
    """Layout and weights that every arc needs."""

    words: tuple[str, ...]
    centers: list[float]
    base: float
    step: float
    numbered: bool

    def root(self, word: int, probability: float, *, best: bool) -> Arc:
        x = self.centers[word]
        return Arc(
            path=f"M{x:.1f} {MARGIN + FONT + 2:.1f}V{self.base - 2:.1f}",
            width=2.2 if best else round(0.6 + 3 * probability, 2),
            opacity=round(probability, 3),
            title=f"{named(self.words[word])} heads the sentence: {number(probability)}",
            best=best,
            arrow=_arrow(x, self.base),
            number=f"root {probability:.2f}" if self.numbered else "root",
            x=round(x, 1),
            y=MARGIN + FONT - 3,
        )

    def arc(self, head: int, word: int, probability: float, *, best: bool) -> Arc:
        side = 1 if self.centers[word] > self.centers[head] else -1
        # Arcs leave a head a little to the side, to keep its own arc visible.
        start, end = self.centers[head] + 7 * side, self.centers[word] - 3 * side
        height = 14 + self.step * abs(head - word)
        control = self.base - height / 0.75  # a cubic reaches three quarters of its handles
        return Arc(
            path=f"M{start:.1f} {self.base:.1f}C{start:.1f} {control:.1f} {end:.1f} {control:.1f} "
            f"{end:.1f} {self.base - 2 * best:.1f}",
            width=2.2 if best else round(0.6 + 3 * probability, 2),
            opacity=round(probability, 3),
            title=f"{named(self.words[head])} heads {named(self.words[word])}: {number(probability)}",
            best=best,
            arrow=_arrow(end, self.base),
            number=f"{probability:.2f}" if self.numbered else "",
            x=round((start + end) / 2, 1),
            y=round(self.base - height - 4, 1),
        )


def root_and_head(trace: AttentionTrace, word: int) -> tuple[float, int | None]:
    """Return the probability that a word heads the sentence, and its head in the best tree."""
    rest = 1 - math.fsum(trace.weights[word])
    if rest < -TOLERANCE:
        raise ValueRangeError(
            f"arcs: the heads of {trace.targets[word]!r} must have probabilities that sum to at most "
            f"1, got {1 - rest:.4g}. Rows are words and columns their heads; transpose the weights "
            f"of an attention that reads children."
        )
    row = trace.best[word] if trace.best is not None else ()
    return max(rest, 0.0), next((head for head, chosen in enumerate(row) if chosen), None)


def _drawn(trace: AttentionTrace, page: _Page, least: float) -> list[Arc]:
    """Return every visible arc, faint ones first, and all arcs of the best tree."""
    found = list[Arc]()
    for word, row in enumerate(trace.weights):
        rest, chosen = root_and_head(trace, word)
        is_root = trace.best is not None and chosen is None
        if rest >= least or is_root:
            found.append(page.root(word, rest, best=is_root))
        for head, probability in enumerate(row):
            if (probability >= least and head != word) or head == chosen:
                found.append(page.arc(head, word, probability, best=head == chosen))
    return sorted(found, key=lambda arc: arc.opacity)


def _check(trace: AttentionTrace) -> None:
    check_weights("arcs", trace)
    if len(trace.sources) != len(trace.targets):
        raise ShapeError(
            f"arcs: expected one row for each word, got {len(trace.targets)} rows and "
            f"{len(trace.sources)} words. Arcs show attention of a sentence to itself; "
            f"use heatmap for two different sequences."
        )


def arcs(trace: AttentionTrace, *, title: str | None = None) -> str:
    """Draw heads as arcs over the words: ink for probability, and the best tree of the trace on top.

    Args:
        trace: Trace of a sentence that attends to itself: rows are words, columns are their heads.
        title: Title of the drawing; by default, a description with the kind of attention.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: The trace does not have one row for each word.
        ValueRangeError: A weight is negative or not finite, or the weights of a word sum to more than 1.

    Examples:
        >>> from foveal.attention import AttentionTrace
        >>> words, weights = ("cats", "sleep"), ((0.0, 0.8), (0.2, 0.0))
        >>> trace = AttentionTrace(kind="syntactic", sources=words, targets=words, weights=weights)
        >>> arcs(trace).count("<title>")       # of the drawing, two words, two arcs and two roots
        7
    """
    _check(trace)
    labels = [short(word, LONGEST_WORD) for word in trace.sources]
    centers = _centers(labels, mirrored=right_to_left(trace.sources))
    scale = scale_of((weight for row in trace.weights for weight in row), least=LEAST)
    spans = [
        abs(head - word)
        for word, row in enumerate(trace.weights)
        for head, weight in enumerate(row)
        if weight >= scale.least or (trace.best is not None and trace.best[word][head])
    ]
    longest = max(spans, default=0)
    step = min(STEP, TALLEST / max(longest, 1))
    base = MARGIN + 2 * FONT + 4 + max(14 + step * longest, ROOT_LENGTH)
    page = _Page(trace.targets, centers, base, step, numbered=len(labels) <= MOST_NUMBERED)
    drawn = _drawn(trace, page, scale.least)
    notes = [f"arcs below {scale.least:.2g} are not drawn"]
    if trace.best is not None:
        notes.append("with arrows: the most probable tree")
    right = sum(max(FONT * width(word) + GAP, NARROWEST) for word in labels)
    best = [arc.title for arc in drawn if arc.best]
    return render_svg(
        "arcs.svg",
        title=heading(trace, title, "Heads of words"),
        description="The most probable tree: " + "; ".join(best[:40]) + "." if best else notes[0],
        width=math.ceil(2 * MARGIN + max(right, note_width("; ".join(notes)))),
        height=math.ceil(base + 2 * FONT + 34),
        words=[
            Word(round(x, 1), label, named(word))
            for x, label, word in zip(centers, labels, trace.sources, strict=True)
        ],
        faint=[arc for arc in drawn if not arc.best],
        best=[arc for arc in drawn if arc.best],
        base=base,
        note="; ".join(notes),
    )
