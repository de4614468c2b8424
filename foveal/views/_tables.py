"""Tables: the numbers of a drawing, for screen readers and for print."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..attention import AttentionTrace
from ..errors import ShapeError
from ._arcs import root_and_head
from ._beam import Hypothesis, ranked
from ._curves import Series, figure_of
from ._sentences import words_of
from ._text import bounded, named, number

MOST_CELLS = 6000  # limit per table; a cell takes about 20 bytes
MOST_STEPS = 200
STRONGEST = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Text in rows; the first column labels its row. A folded table opens on request."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ShapeError(
                    f"Table: expected {len(self.columns)} cells in every row of {self.caption!r}, got "
                    f"{len(row)} in {row}. Use an empty text for an empty cell."
                )


def _strongest_table(trace: AttentionTrace) -> Table:
    rows = list[tuple[str, ...]]()
    listed = trace.targets[: MOST_CELLS // (STRONGEST + 1)]
    for target, row in zip(listed, trace.weights, strict=False):
        order = sorted(range(len(row)), key=lambda place: -row[place])[:STRONGEST]
        said = [f"{named(trace.sources[place])} {number(row[place])}" for place in order]
        rows.append((bounded(target), *said, *[""] * (STRONGEST - len(said))))
    return Table(
        caption=f"The {STRONGEST} positions that each output reads most",
        columns=("output", *(f"{rank}." for rank in range(1, STRONGEST + 1))),
        rows=tuple(rows),
        folded=True,
    )


def weights_table(trace: AttentionTrace) -> Table:
    """List every weight of a trace.

    The table has a row for each output, or for each position if an output has many positions (words in sentences,
    cells of a grid, facts). If it would be too large to read, it lists the strongest positions of each output.

    Args:
        trace: Trace to list.

    Returns:
        A folded table.
    """
    if len(trace.sources) * len(trace.targets) > MOST_CELLS:
        return _strongest_table(trace)
    targets = tuple(map(bounded, trace.targets))
    match trace.layout.kind:
        case "sequence":
            columns = ("output", *map(bounded, trace.sources))
            rows = [
                (target, *map(number, row))
                for target, row in zip(targets, trace.weights, strict=True)
            ]
        case "sentences":
            columns = ("sentence", "word", *targets)
            rows = [
                (str(index + 1), bounded(trace.sources[place]), *_column(trace, place))
                for index, places in enumerate(words_of(trace))
                for place in places
            ]
        case "grid" | "facts":
            columns = ("place", *targets)
            rows = [
                (bounded(source), *_column(trace, place))
                for place, source in enumerate(trace.sources)
            ]
    return Table(caption="Weights", columns=columns, rows=tuple(rows), folded=True)


def _column(trace: AttentionTrace, place: int) -> tuple[str, ...]:
    return tuple(number(row[place]) for row in trace.weights)


def heads_table(trace: AttentionTrace) -> Table:
    """List the numbers of `arcs`: for each word the probability of each head, and its head in the best tree.

    Args:
        trace: Trace that `arcs` draws.

    Returns:
        A folded table. If it would be too large to read, it lists the strongest heads of each word.
    """
    if len(trace.sources) * len(trace.targets) > MOST_CELLS:
        return _strongest_table(trace)
    rows = list[tuple[str, ...]]()
    for word, row in enumerate(trace.weights):
        rest, head = root_and_head(trace, word)
        best = ("none" if head is None else bounded(trace.sources[head]),) if trace.best else ()
        rows.append((bounded(trace.targets[word]), *best, number(rest), *map(number, row)))
    best = ("best head",) if trace.best else ()
    columns = ("word", *best, "none: it heads the sentence", *map(bounded, trace.sources))
    return Table(caption="Heads", columns=columns, rows=tuple(rows), folded=True)


def hypotheses_table(hypotheses: Sequence[Hypothesis]) -> Table:
    """List the hypotheses of a search, best first, each token with its probability.

    Args:
        hypotheses: Finished and pruned hypotheses, in any order.

    Returns:
        A folded table with a row for each hypothesis.
    """
    rows = list[tuple[str, ...]]()
    for rank, each in enumerate(ranked(hypotheses)[: MOST_CELLS // 4], 1):
        said = (
            f"{named(token)} {number(math.exp(min(log_prob, 0.0)))}"
            for token, log_prob in zip(each.tokens, each.log_probs, strict=True)
        )
        state = "finished" if each.finished else "dropped"
        rows.append((str(rank), state, f"{each.score:.4g}", "  ".join(said)))
    columns = ("rank", "state", "score", "tokens, each with its probability")
    return Table(caption="Hypotheses", columns=columns, rows=tuple(rows), folded=True)


def series_table(
    series: Sequence[Series], *, x_label: str = "step", caption: str = "Values"
) -> Table:
    """List the points of curves, with a row for each step; long runs list evenly spaced steps.

    Args:
        series: Curves, one for each column.
        x_label: Heading of the column of steps.
        caption: Caption of the table.

    Returns:
        A folded table.
    """
    values = [dict(each.points) for each in series]
    steps = sorted({step for points in values for step in points})
    every = math.ceil(len(steps) / MOST_STEPS) or 1
    chosen = steps[::-1][::every][::-1]  # always keep the last step
    rows = tuple(
        (figure_of(step), *(figure_of(at[step]) if step in at else "" for at in values))
        for step in chosen
    )
    caption = caption if every == 1 else f"{caption}, one step in {every}"
    columns = (x_label, *(bounded(each.name) for each in series))
    return Table(caption=caption, columns=columns, rows=rows, folded=True)
