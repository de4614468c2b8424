"""Long inputs, such as documents: their strongest positions, and their words in sentences.

A heat map of 400 positions and one output has cells of a few pixels. The words themselves are readable, with
ink behind them; a table lists the positions with the largest weights first.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ...attention import AttentionTrace, Layout
from ...views._sentences import words_of
from ...views._tables import Table
from ...views._text import bounded, number

LONG = 60  # an input with more positions is long
FEW = 4  # with at most this many outputs, the words are rendered once for each output
MOST_WORDS = 600  # maximum for all outputs together; a longer input shows its strongest sentences
STRONGEST = 20  # positions in the first table
LONGEST_SENTENCE = 40  # words; a text without full stops is broken here
# Punctuation that ends a sentence, also in Chinese and Japanese, with an optional closing quotation mark.
_ENDS = re.compile(r".*[.!?\u2026\u3002\uff01\uff1f]['\")\]\u201d\u2019]*").fullmatch
_SHOWN_AS_ZERO = 0.0005

Item = TypeVar("Item")


def is_long(trace: AttentionTrace) -> bool:
    """Return whether a trace has too many positions for a heat map, and few enough outputs to render its words."""
    return (
        trace.layout.kind in ("sequence", "sentences")
        and len(trace.sources) > LONG
        and len(trace.targets) <= FEW
    )


def in_sentences(trace: AttentionTrace) -> AttentionTrace:
    """Lay out the positions of a trace as sentences of words; the strongest sentences if there are many."""
    parts = words_of(trace) if trace.layout.kind == "sentences" else list(_parts(trace.sources))
    parts = [part for part in parts if len(part)]
    room = MOST_WORDS // max(len(trace.targets), 1)
    kept, number_kept = set[int](), 0
    for index in sorted(range(len(parts)), key=lambda index: -_share(trace, parts[index])):
        if kept and number_kept + len(parts[index]) > room:
            break
        kept.add(index)
        number_kept += len(parts[index])
    chosen = [part for index, part in enumerate(parts) if index in kept]
    longest = max(map(len, chosen), default=0)
    return replace(
        trace,
        sources=tuple(_filled(trace.sources, chosen, longest, "")),
        weights=tuple(tuple(_filled(row, chosen, longest, 0.0)) for row in trace.weights),
        best=None,
        layout=Layout("sentences", len(chosen), longest),
    )


def strongest_tables(trace: AttentionTrace, *, caption: str) -> tuple[Table, ...]:
    """List the positions with the largest weights, and the other nonzero weights in a folded table."""
    order = sorted(
        (place for place, source in enumerate(trace.sources) if source),
        key=lambda place: -_share(trace, (place,)),
    )
    columns = ("word", "position", *map(bounded, trace.targets))
    rows = [
        (
            bounded(trace.sources[place]),
            str(place + 1),
            *(number(row[place]) for row in trace.weights),
        )
        for place in order
        if max((row[place] for row in trace.weights), default=0.0) >= _SHOWN_AS_ZERO
    ]
    first = Table(caption=f"{caption}: largest", columns=columns, rows=tuple(rows[:STRONGEST]))
    others = Table(
        caption=f"{caption}: others above zero",
        columns=columns,
        rows=tuple(rows[STRONGEST:]),
        folded=True,
    )
    return (first, others) if others.rows else (first,)


def _parts(words: Sequence[str]) -> Iterator[range]:
    """Return the positions of each sentence of a text."""
    start = 0
    for place, word in enumerate(words):
        is_last = place + 1 == len(words)
        if _ENDS(word) or is_last or place + 1 - start == LONGEST_SENTENCE:
            yield range(start, place + 1)
            start = place + 1


def _share(trace: AttentionTrace, places: Iterable[int]) -> float:
    """Return the total weight of some positions in all outputs."""
    listed = list(places)
    return math.fsum(row[place] for row in trace.weights for place in listed)


def _filled(
    items: Sequence[Item], parts: Sequence[range], longest: int, empty: Item
) -> Iterator[Item]:
    for part in parts:
        yield from (items[place] for place in part)
        yield from [empty] * (longest - len(part))
