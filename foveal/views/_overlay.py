"""Attention on an image: one frame for each output word, lit at the attended cells.

    veil(cell) = 1 - weight / the largest weight of the frame        relative opacity of a dark layer over the image

Each frame therefore uses its whole range, and prints its largest weight. The outline contains the fewest
cells that together have half of the weight, and is visible on any image.

A pixel belongs to the cell with the nearest center. Cells that divide the image evenly lie side by side.
Cells of a convolution with padding are centered on pixels 0, pitch, 2 pitch, ...: the edge of the image cuts
the first cell in half, and the last cell extends to the opposite edge.

    pitch 8, a row of 24 pixels      |0 .. 4.5|4.5 .. 12.5|12.5 .. 24|      centers 0.5, 8.5, 16.5
"""

import hashlib
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped, UInt8

from ..attention import AttentionTrace
from ..errors import ShapeError, ValueRangeError
from ._ink import check_weights, heading, scale_of
from ._png import data_uri, shrunk
from ._render import render_svg
from ._text import named, note_width, number, short

MARGIN, GAP = 14.0, 14.0
FRAME = 168.0  # pixels of the longer side
STRIP = 3.0  # aspect ratio from which an image, such as a line of text, gets wider frames
CAPTION = 40.0
MOST_IN_A_ROW = 5
LONGEST_WORD = 11.0  # ems
MOST_PIXELS = 256  # the longer side of the embedded image
MOST_FRAMES = 100
DARKEST = 0.82  # opacity of the veil: unattended parts remain visible


class Cell(NamedTuple):
    """A cell with its weight as hover text."""

    x: float
    y: float
    width: float
    height: float
    title: str


class Side(NamedTuple):
    """The cells along one side of a frame, in units of the frame."""

    edges: Float[np.ndarray, " cells+1"]  # from 0 to the length of the side
    start: float  # start of the dark layer, whose pixels are cells; the outside is cropped
    step: float
    more: int  # cells of that layer beyond the last, up to the end of the side


class Frame(NamedTuple):
    """The image with the attention of one word."""

    x: float
    y: float
    label: str
    title: str
    most: str
    veil: str
    key: str
    outline: str
    cells: tuple[Cell, ...]


def _pixels(image: Shaped[np.ndarray, "h w *channels"]) -> UInt8[np.ndarray, "h w c"]:
    """Return the image as bytes, gray or RGB."""
    shape, kind = image.shape, image.dtype
    fits = image.ndim == 2 or (image.ndim == 3 and shape[-1] in (1, 3))
    if not fits or 0 in shape:
        raise ShapeError(
            f"overlay: the image must have shape (h, w), (h, w, 1) or (h, w, 3), got {shape}. "
            f"Move the channels of a (c, h, w) array last with numpy.moveaxis(image, 0, -1)."
        )
    pixels = image if image.ndim == 3 else image[..., None]
    if kind == np.uint8:
        return pixels
    if not np.issubdtype(kind, np.floating) or not ((pixels >= 0) & (pixels <= 1)).all():
        raise ValueRangeError(
            f"overlay: the image must be uint8, or floats from 0 to 1, got {kind} from "
            f"{pixels.min()} to {pixels.max()}. Undo the normalization that the model was given."
        )
    return np.round(255 * pixels).astype(np.uint8)


def _half(weights: np.ndarray) -> np.ndarray:
    """Return the fewest cells that contain half of the weight."""
    order = np.argsort(-weights, axis=None, kind="stable")
    before = np.cumsum(weights.flat[order]) - weights.flat[order]
    held = np.zeros(weights.size, bool)
    held[order] = before < weights.sum() / 2
    return held.reshape(weights.shape)


def _outline(held: np.ndarray, across: Side, down: Side) -> str:
    """Return the border of the selected cells as one path."""
    padded = np.pad(held, 1)
    inside = padded[1:-1, 1:-1]
    sides = (
        (padded[:-2, 1:-1], 0, 0, "h"),
        (padded[2:, 1:-1], 0, 1, "h"),
        (padded[1:-1, :-2], 0, 0, "v"),
        (padded[1:-1, 2:], 1, 0, "v"),
    )
    width, height = np.diff(across.edges), np.diff(down.edges)
    return "".join(
        f"M{across.edges[column + right]:.2f} {down.edges[row + below]:.2f}"
        f"{stroke}{width[column] if stroke == 'h' else height[row]:.2f}"
        for neighbor, right, below, stroke in sides
        for row, column in np.argwhere(inside & ~neighbor)
    )


def _side(num_cells: int, pitch: int | None, num_pixels: int, length: float) -> Side:
    """Return the cells along a side of this many pixels, drawn at this length.

    Examples:
        >>> _side(3, None, 24, 24.0).edges.tolist(), _side(3, 8, 24, 24.0).edges.tolist()
        ([0.0, 8.0, 16.0, 24.0], [0.0, 4.5, 12.5, 24.0])
    """
    if pitch is None:
        return Side(np.linspace(0, length, num_cells + 1), 0.0, length / num_cells, 0)
    pixel = length / num_pixels
    start, step = (1 - pitch) / 2 * pixel, pitch * pixel
    edges = start + step * np.arange(num_cells + 1)
    edges[0], edges[-1] = 0.0, length
    return Side(edges.clip(0, length), start, step, 1)


def _grid(trace: AttentionTrace) -> tuple[int, int]:
    rows, columns = trace.layout.rows, trace.layout.columns
    if trace.layout.kind != "grid" or rows is None or columns is None:
        raise ShapeError(
            f"overlay: expected a trace whose layout is a grid, got {trace.layout}. "
            f"Pass the layout of grid_memory to trace_of, or use heatmap."
        )
    if rows * columns != len(trace.sources) or not trace.sources:
        raise ShapeError(
            f"overlay: expected {rows} * {columns} = {rows * columns} positions, at least one, got "
            f"{len(trace.sources)}. Pass a label for every cell of the grid."
        )
    if len(trace.targets) > MOST_FRAMES:
        raise ShapeError(
            f"overlay: expected at most {MOST_FRAMES} outputs, got {len(trace.targets)}. "
            f"Draw a part of them."
        )
    return rows, columns


def _in_a_row(num_frames: int, width: float = FRAME) -> int:
    """Return the number of frames in a row that fills the last row about evenly.

    Examples:
        >>> [_in_a_row(number) for number in (1, 5, 6, 11)]
        [1, 5, 3, 4]
    """
    most = max(1, int(MOST_IN_A_ROW * FRAME / max(width, FRAME)))
    return math.ceil(num_frames / math.ceil(num_frames / most))


def _times(tall: int, wide: int) -> float:
    """Return the enlargement of the frames of a wide image."""
    return min(MOST_IN_A_ROW, max(1.0, wide / tall / STRIP))


def _frames(
    trace: AttentionTrace, size: tuple[float, float], sides: tuple[Side, Side], least: float
) -> Iterator[Frame]:
    rows, columns = _grid(trace)
    in_a_row = _in_a_row(len(trace.targets) + 1, size[0])
    across, down = sides
    left, top = across.edges, down.edges
    for query, row in enumerate(trace.weights):
        weights = np.array(row).reshape(rows, columns)
        most = float(weights.max())
        lit = weights / most if most > 0 else weights
        dark = np.round(255 * DARKEST * (1 - lit)).astype(np.uint8)
        veil = data_uri(np.pad(dark, ((0, down.more), (0, across.more)), "edge")[..., None])
        word, position = trace.targets[query], query + 1  # frame 0 is the image without attention
        label = named(word)
        yield Frame(
            x=MARGIN + position % in_a_row * (size[0] + GAP),
            y=MARGIN + position // in_a_row * (size[1] + CAPTION),
            label=short(word, LONGEST_WORD),
            title=label,
            most=f"up to {number(most)}",
            veil=veil,
            key="sl-" + hashlib.sha256(f"{query} {veil} {size}".encode()).hexdigest()[:12],
            outline=_outline(_half(weights), across, down) if most > 0 else "",
            cells=tuple(
                Cell(
                    round(left[c], 2),
                    round(top[r], 2),
                    round(left[c + 1] - left[c], 2),
                    round(top[r + 1] - top[r], 2),
                    f"{label} reads row {r + 1}, column {c + 1}: {number(float(weights[r, c]))}",
                )
                for r, c in np.argwhere(weights >= least).tolist()
            ),
        )


def overlay(
    trace: AttentionTrace,
    image: Shaped[np.ndarray, "h w *channels"],
    *,
    title: str | None = None,
) -> str:
    """Draw the image once for each output word, lit at the attended cells.

    Large images are downscaled.

    Args:
        trace: Trace with the layout of `grid_memory`.
        image: Gray `(h, w)` or RGB `(h, w, 3)`, uint8 or floats from 0 to 1.
        title: Title of the drawing; by default, a description with the kind of attention.

    Returns:
        An SVG drawing.

    Raises:
        ShapeError: The image has another shape, the layout is not a grid, or there are more than 100 outputs.
        ValueRangeError: A pixel is out of range, or a weight is negative or not finite.

    Examples:
        >>> import numpy as np
        >>> from foveal.attention import AttentionTrace, Layout
        >>> trace = AttentionTrace(kind="spatial", sources=("a", "b"), targets=("dot",),
        ...                        weights=((0.9, 0.1),), layout=Layout("grid", 1, 2))
        >>> overlay(trace, np.zeros((8, 16))).count("<use ")
        2
    """
    check_weights("overlay", trace)
    tall, wide = image.shape[:2]
    times = _times(tall, wide)
    pixels = shrunk(_pixels(image), round(MOST_PIXELS * times))
    # The short side of a narrow image remains visible.
    longest, side = FRAME * times, max(tall, wide)
    size = (longest * max(wide / side, 0.2), longest * max(tall / side, 0.2 / times))
    least = scale_of(weight for row in trace.weights for weight in row).least
    rows, columns = _grid(trace)
    pitch = trace.layout.pitch or (None, None)
    across = _side(columns, pitch[1], wide, size[0])
    down = _side(rows, pitch[0], tall, size[1])
    frames = list(_frames(trace, size, (across, down), least))
    address = data_uri(pixels)
    notes = ["bright: attended cells; outlined: the fewest cells with half of the weight"]
    if least > 0:
        notes.append(f"no hover text below {least:.1g}")
    in_a_row = _in_a_row(len(frames) + 1, size[0])
    num_rows = math.ceil((len(frames) + 1) / in_a_row)
    said = "; ".join(f"{frame.title} {frame.most}" for frame in frames[:12])
    return render_svg(
        "overlay.svg",
        title=heading(trace, title, "Where each output looks"),
        description=f"{len(frames)} outputs over {rows} by {columns} cells. Weights: {said}.",
        width=math.ceil(2 * MARGIN + max(in_a_row * (size[0] + GAP), *map(note_width, notes))),
        height=math.ceil(MARGIN + num_rows * (size[1] + CAPTION) + 34),
        frame_width=round(size[0], 2),
        frame_height=round(size[1], 2),
        veil=[
            round(number, 2)
            for number in (
                across.start,
                down.start,
                across.step * (columns + across.more),
                down.step * (rows + down.more),
            )
        ],
        image=address,
        key="sl-" + hashlib.sha256(address.encode()).hexdigest()[:12],
        frames=frames,
        notes=notes,
        notes_y=MARGIN + num_rows * (size[1] + CAPTION) + 8,
    )
