"""Words in sentences: the attention of a document's reader to each word and each sentence.

    weight of word w in sentence i = a_i b_iw,     a_i = sum_w of that, if the words' weights sum to 1

Ink shows the total weight of a word, a bar the weight of its sentence (Yang et al. 2016, figure 5).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ..attention import AttentionTrace, Layout
from ..errors import ShapeError
from ._ink import Ink, Scale, check_weights, heading, scale_of, strongest
from ._render import render_svg
from ._text import named, number, right_to_left, short, width

FONT = 14.0
MARGIN = 14.0
LONGEST_WORD = 24.0  # ems
BAR, LINE_WIDTH = 96.0, 420.0
LINE, BETWEEN = 26.0, 10.0  # the height of a line, and the gap between two sentences
PADDING = 5.0
MOST_WORDS = 2000  # in one drawing: nobody would read more

Item = TypeVar("Item")


class Word(NamedTuple):
    """A word on its ink."""

    x: float
    y: float
    width: float
    ink: Ink
    text: str
    title: str


class Sentence(NamedTuple):
    """A bar for the sentence, and its words over one or more lines."""

    y: float
    bar: float
    number: str
    title: str
    words: tuple[Word, ...]


class Block(NamedTuple):
    """The whole document, as one query reads it."""

    y: float
    label: str
    title: str
    sentences: tuple[Sentence, ...]


def words_of(trace: AttentionTrace) -> list[range]:
    """Return the positions of each sentence, without the empty padding labels."""
    layout = trace.layout
    rows, columns = layout.rows, layout.columns
    if layout.kind != "sentences" or rows is None or columns is None:
        raise ShapeError(
            f"sentences: expected a trace whose layout is sentences of words, got {layout}. "
            f"Make it with sentences_trace, or use heatmap."
        )
    if rows * columns != len(trace.sources):
        raise ShapeError(
            f"sentences: expected {rows} * {columns} = {rows * columns} positions, got "
            f"{len(trace.sources)}. Pad every sentence to the longest with empty labels."
        )
    found = list[range]()
    for start in range(0, rows * columns, max(columns, 1)):
        last = max((i for i in range(columns) if trace.sources[start + i]), default=-1)
        found.append(range(start, start + last + 1))
    return found


def in_a_row(trace: AttentionTrace) -> AttentionTrace:
    """Return the words of a document as one sequence, without the padding of its sentences."""
    real = [place for places in words_of(trace) for place in places]

    def chosen(row: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(row[place] for place in real)

    return replace(
        trace,
        sources=chosen(trace.sources),
        weights=tuple(map(chosen, trace.weights)),
        best=None if trace.best is None else tuple(map(chosen, trace.best)),
        layout=Layout(),
    )


class _Cursor:
    """The position of the next word: lines fill from the side where reading begins."""

    def __init__(self, y: float, *, mirrored: bool) -> None:
        self.y, self.offset, self.mirrored = y, 0.0, mirrored

    def take(self, room: float) -> float:
        """Return the left edge for a word of this width; starts a new line if it does not fit."""
        if self.offset > 0 and self.offset + room > LINE_WIDTH:
            self.y, self.offset = self.y + LINE, 0.0
        start = self.offset
        self.offset += room + 3
        left = LINE_WIDTH - start - room if self.mirrored else start
        return round(MARGIN + BAR + 14 + left, 1)


def _words(
    trace: AttentionTrace, query: int, places: range, scale: Scale, cursor: _Cursor
) -> Iterator[Word]:
    row = trace.weights[query]
    share = math.fsum(row[place] for place in places)
    for place in places:
        label = short(trace.sources[place], LONGEST_WORD)
        room = FONT * width(label) + 2 * PADDING
        x = cursor.take(room)
        within = row[place] / share if share > 0 else 0.0
        yield Word(
            x,
            round(cursor.y, 1),
            round(room, 1),
            scale.ink(row[place]),
            label,
            f"{named(trace.sources[place])}: {number(row[place])}, "
            f"which is {number(within)} of its sentence",
        )


def _block(
    trace: AttentionTrace, query: int, sentences: list[range], scale: Scale, y: float
) -> tuple[Block, float]:
    """Lay out one query, and return its block and the start of the next block."""
    top, mirrored = y, right_to_left(trace.sources)
    y += 28
    drawn = list[Sentence]()
    shares = [math.fsum(trace.weights[query][place] for place in places) for places in sentences]
    most = max(shares, default=0.0)
    for index, (places, share) in enumerate(zip(sentences, shares, strict=True)):
        cursor = _Cursor(y, mirrored=mirrored)
        words = tuple(_words(trace, query, places, scale, cursor))
        title = f"sentence {index + 1}: {number(share)}"
        drawn.append(Sentence(y, round(60 * share / (most or 1), 1), f"{share:.2f}", title, words))
        y = cursor.y + LINE + BETWEEN
    name = trace.targets[query]
    return Block(top, short(name, LONGEST_WORD), named(name), tuple(drawn)), y + 6


def sentences(trace: AttentionTrace, *, title: str | None = None) -> str:
    """Draw a document once for each query, with ink behind every word and a bar for every sentence.

    Args:
        trace: Trace of a document, from `sentences_trace`.
        title: Title of the drawing; by default, a description with the kind of attention.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: There are too many words to draw, or the layout is not "sentences".
        ValueRangeError: A weight is negative or not finite.

    Examples:
        >>> from foveal.attention import AttentionTrace, Layout
        >>> trace = AttentionTrace(
        ...     kind="hierarchical", sources=("so", "good", "it", ""), targets=("positive",),
        ...     weights=((0.1, 0.7, 0.2, 0.0),), layout=Layout("sentences", 2, 2))
        >>> sentences(trace).count('class="word ')
        3
    """
    check_weights("sentences", trace)
    parts = words_of(trace)
    total = sum(map(len, parts)) * len(trace.targets)
    if total > MOST_WORDS:
        raise ShapeError(
            f"sentences: expected at most {MOST_WORDS} words to draw, got {total} "
            f"({len(trace.targets)} queries). Draw fewer queries, or the strongest sentences only."
        )
    scale = scale_of(weight for row in trace.weights for weight in row)
    y, blocks = MARGIN, list[Block]()
    for query in range(len(trace.targets)):
        block, y = _block(trace, query, parts, scale, y)
        blocks.append(block)
    if not total:
        y += 24
    return render_svg(
        "sentences.svg",
        title=heading(trace, title, "Words and sentences read"),
        description=strongest(trace),
        width=math.ceil(2 * MARGIN + BAR + 14 + LINE_WIDTH),
        height=math.ceil(y + 50),
        blocks=blocks,
        line=LINE,
        padding=PADDING,
        scale=scale,
        legend_y=y + 4,
        note="bars: the weight of each sentence, the longest for the largest",
        empty="" if total else "no output" if not trace.targets else "no words",
    )
