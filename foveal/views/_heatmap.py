"""The alignment heat map: a row for each query, a column for each position, ink for weight.

Softmax, sigmoid, sparse, local, monotone and segment attention all use this view. If the trace has the most
probable selection, its runs of neighboring positions are outlined. If it has probabilities of copying, a bar at the end
of each row shows them.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ..attention import AttentionTrace
from ._ink import MOST_MARKS, Ink, Scale, check_weights, heading, scale_of, strongest
from ._png import data_uri, shrunk
from ._render import render_svg
from ._text import named, note_width, number, right_to_left, short, width

FONT = 13.0
MARGIN = 12.0
LONGEST_LABEL = 13.0  # ems
LARGEST_TABLE = 14  # maps with at most this many rows and columns print the numbers in the cells
SMALLEST_CELL, LARGEST_CELL = 4.0, 80.0
WIDEST_MAP = 1200.0
LABEL_SPACING = 13.0  # pixels: closer labels run into each other
LEGEND_WIDTH = 200.0  # next to the name of the unit
COPY_GAP, COPY_WIDTH = 14.0, 40.0  # gap before the bars of copying, width of a full bar
MOST_PIXELS = 512  # maximum side of the raster of a very large map
CLEAR = Ink("0", "kw")  # for a cell that only has a hover text


class Cell(NamedTuple):
    """One weight."""

    x: float
    y: float
    ink: Ink
    title: str
    text: str  # the number in the cell, if there is room


class Outline(NamedTuple):
    """A run of selected positions."""

    x: float
    y: float
    width: float


class Bar(NamedTuple):
    """The probability of copying at one query."""

    y: float
    width: float
    title: str


class Label(NamedTuple):
    """A token next to its row or column."""

    x: float
    y: float
    text: str
    title: str


class Grid(NamedTuple):
    """The geometry of the cells."""

    left: float
    top: float
    cell_width: float
    cell_height: float
    num_rows: int
    num_columns: int
    mirrored: bool  # the first position is at the right
    slanted: bool  # labels of the positions
    right: float  # room for slanted labels beyond the last column

    def x(self, place: int) -> float:
        """Return the left edge of a column."""
        column = self.num_columns - 1 - place if self.mirrored else place
        return round(self.left + column * self.cell_width, 2)

    def y(self, query: int) -> float:
        """Return the upper edge of a row."""
        return round(self.top + query * self.cell_height, 2)


def _labels(tokens: Sequence[str]) -> list[str]:
    return [short(token, LONGEST_LABEL) for token in tokens]


def _grid(trace: AttentionTrace) -> Grid:
    """Make the cells as large as possible, with upright labels if they fit over their column."""
    places, queries = len(trace.sources), len(trace.targets)
    sources = [FONT * width(label) for label in _labels(trace.sources)]
    targets = [FONT * width(label) for label in _labels(trace.targets)]
    longest, roomy = max(sources, default=0.0), max(places, queries) <= LARGEST_TABLE
    smallest = (
        36.0 if roomy else max(SMALLEST_CELL, min(20.0, WIDEST_MAP / max(places, queries, 1)))
    )
    wanted = max(longest + 10, smallest)
    slanted = wanted > LARGEST_CELL or wanted * places > WIDEST_MAP
    across = smallest if slanted else wanted
    down = 30.0 if roomy else smallest
    rise = longest * math.sqrt(0.5) + FONT if slanted else FONT + 4
    return Grid(
        left=MARGIN + max(targets, default=0.0) + 8,
        top=MARGIN + rise + 6,
        cell_width=round(across, 2),
        cell_height=round(down, 2),
        num_rows=queries,
        num_columns=places,
        mirrored=right_to_left(trace.sources),
        slanted=slanted,
        right=max(MARGIN, rise - across / 2) if slanted else MARGIN,
    )


def _cells(
    trace: AttentionTrace, grid: Grid, scale: Scale, *, raster: bool, verb: str
) -> Iterator[Cell]:
    written = max(grid.num_rows, grid.num_columns) <= LARGEST_TABLE
    targets, sources = [[*map(named, tokens)] for tokens in (trace.targets, trace.sources)]
    columns = [grid.x(place) for place in range(grid.num_columns)]
    for query, row in enumerate(trace.weights):
        y = grid.y(query)
        for place, weight in enumerate(row):
            if weight < scale.least:
                continue
            yield Cell(
                x=columns[place],
                y=y,
                ink=CLEAR if raster else scale.ink(weight),
                title=f"{targets[query]} {verb} {sources[place]}: {number(weight)}",
                text=f"{weight:.2f}".removeprefix("0") if written and weight >= 0.005 else "",
            )


def _outlines(trace: AttentionTrace, grid: Grid) -> Iterator[Outline]:
    """Return the runs of selected positions in every row."""
    for query, row in enumerate(trace.best or ()):
        for selected, run in groupby(enumerate(row), key=lambda entry: entry[1]):
            places = [place for place, _ in run]
            if selected:
                x = min(grid.x(places[0]), grid.x(places[-1]))
                yield Outline(x, grid.y(query), round(len(places) * grid.cell_width, 2))


def _bars(trace: AttentionTrace, grid: Grid) -> Iterator[Bar]:
    """Return a bar for each query of a trace with probabilities of copying."""
    for query, probability in enumerate(trace.copied or ()):
        title = f"{named(trace.targets[query])} is copied with probability {number(probability)}"
        yield Bar(grid.y(query), round(probability * COPY_WIDTH, 2), title)


def _row_labels(trace: AttentionTrace, grid: Grid) -> Iterator[Label]:
    every = math.ceil(LABEL_SPACING / grid.cell_height)
    for query, label in list(enumerate(_labels(trace.targets)))[::every]:
        middle = grid.y(query) + grid.cell_height / 2 + 4.5
        yield Label(grid.left - 8, round(middle, 2), label, named(trace.targets[query]))


def _column_labels(trace: AttentionTrace, grid: Grid) -> Iterator[Label]:
    every = math.ceil(LABEL_SPACING / grid.cell_width)
    for place, label in list(enumerate(_labels(trace.sources)))[::every]:
        middle = grid.x(place) + grid.cell_width / 2 + (3 if grid.slanted else 0)
        yield Label(round(middle, 2), grid.top - 7, label, named(trace.sources[place]))


def _raster(trace: AttentionTrace, scale: Scale, *, mirrored: bool) -> str:
    """Return the weights as a gray image, which a mask turns into ink."""
    shares = np.clip(np.array(trace.weights) / scale.top, 0, 1)
    pixels = np.round(255 * (shares[:, ::-1] if mirrored else shares)).astype(np.uint8)
    return data_uri(shrunk(pixels[..., None], MOST_PIXELS))


def heatmap(
    trace: AttentionTrace,
    *,
    title: str | None = None,
    verb: str = "reads",
    unit: str = "weight",
) -> str:
    """Draw weights as ink, with the most probable selection outlined if the trace has one.

    Every cell has its numbers as hover text; small maps also print them in the cells. Positions with
    right-to-left labels run from right to left.

    Args:
        trace: Trace to draw.
        title: Title of the drawing; by default, a description with the kind of attention.
        verb: Relation between an output and a position, in hover texts. Change it for a heat map of something other
            than attention.
        unit: Name of the quantity that is shown as ink.

    Returns:
        An SVG drawing.

    Raises:
        ValueRangeError: A weight is negative or not finite.

    Examples:
        >>> from foveal.attention import AttentionTrace
        >>> trace = AttentionTrace(kind="softmax", sources=("a", "b"), targets=("x",), weights=((0.9, 0.1),))
        >>> heatmap(trace).count('<rect class="cell ink"')
        2
    """
    check_weights("heatmap", trace)
    grid = _grid(trace)
    weights = [weight for row in trace.weights for weight in row]
    scale, raster = scale_of(weights), len(weights) > MOST_MARKS
    image = _raster(trace, scale, mirrored=grid.mirrored) if raster else ""
    notes = list[str]()
    if trace.best is not None:
        notes.append("outlined: the most probable selection")
    if trace.copied is not None:
        notes.append("bars: probability of copying")
    if raster:
        notes.append(f"no hover text below {scale.least:.1g}")
    note = "; ".join(notes)
    bottom = grid.y(grid.num_rows) if weights else grid.top + 24
    copy_left = grid.left + grid.num_columns * grid.cell_width + COPY_GAP
    right = copy_left - COPY_GAP + grid.right
    if trace.copied is not None:
        right = max(right, copy_left + COPY_WIDTH + MARGIN)
    return render_svg(
        "heatmap.svg",
        title=heading(trace, title, "Attention of each output"),
        description=strongest(trace, verb=verb),
        width=math.ceil(
            max(right, 2 * MARGIN + max(LEGEND_WIDTH + note_width(unit), note_width(note)))
        ),
        height=math.ceil(bottom + 18 + (36 if notes else 18) + MARGIN),
        grid=grid,
        cells=list(_cells(trace, grid, scale, raster=raster, verb=verb)),
        outlines=list(_outlines(trace, grid)),
        bars=list(_bars(trace, grid)),
        copy_left=round(copy_left, 2),
        copy_width=COPY_WIDTH,
        rows=list(_row_labels(trace, grid)),
        columns=list(_column_labels(trace, grid)),
        image=image,
        key="sl-" + hashlib.sha256(image.encode()).hexdigest()[:12],
        scale=scale,
        unit=unit,
        unit_room=round(note_width(unit) + 6, 1),
        note=note,
        legend_y=bottom + 18,
        empty="" if weights else ("no output" if not trace.targets else "no input"),
    )
