"""Which view a trace calls for: the one that lays its places out as they lie."""

from ...attention import AttentionTrace
from ._arcs import arcs
from ._heatmap import heatmap
from ._sentences import sentences
from ._tables import Table, heads_table, weights_table

OF_HEADS = ("syntactic", "head_selection")  # kinds of attention of words to their heads


def drawing(trace: AttentionTrace, *, title: str | None = None) -> str:
    """Words in sentences, arcs between words and their heads, or a heat map."""
    if trace.layout.kind == "sentences":
        return sentences(trace, title=title)
    return arcs(trace, title=title) if trace.kind in OF_HEADS else heatmap(trace, title=title)


def drawing_table(trace: AttentionTrace) -> Table:
    """The numbers of that view."""
    return heads_table(trace) if trace.kind in OF_HEADS else weights_table(trace)
