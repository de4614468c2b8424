"""The choice of a view that matches the layout of a trace."""

import numpy as np
from jaxtyping import Shaped

from ..attention import AttentionTrace
from ._arcs import arcs
from ._heatmap import heatmap
from ._overlay import MOST_FRAMES, overlay
from ._sentences import in_a_row, sentences
from ._tables import Table, heads_table, weights_table

MOST_DOCUMENTS = (
    4  # a document with more outputs is a heat map, because each output would repeat all its words
)
OF_HEADS = ("syntactic", "head_selection")  # kinds of attention of words to their heads


def drawing(
    trace: AttentionTrace,
    *,
    title: str | None = None,
    image: Shaped[np.ndarray, "h w *channels"] | None = None,
) -> str:
    """Draw a trace: the image once for each word, words in sentences once for each of a few outputs, arcs between words
    and their heads, or a heat map.
    """
    if trace.layout.kind == "grid" and image is not None and len(trace.targets) <= MOST_FRAMES:
        return overlay(trace, image, title=title)
    if trace.layout.kind == "sentences":
        if len(trace.targets) <= MOST_DOCUMENTS:
            return sentences(trace, title=title)
        return heatmap(in_a_row(trace), title=title)
    return arcs(trace, title=title) if trace.kind in OF_HEADS else heatmap(trace, title=title)


def drawing_table(trace: AttentionTrace) -> Table:
    """Return the numbers of that view as a table."""
    return heads_table(trace) if trace.kind in OF_HEADS else weights_table(trace)
