"""The ops of projective trees; each has the arguments of the op of `foveal_native` of the same name.

The inside pass, the outside pass and both passes of the tangent take one launch for each width of spans: N - 1
launches for N nodes.

Axes: B batch, n words, M = n + 1 words and the root, N nodes of a chart (n, or M), S samples.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from . import (
    _projective_kernels as kernels,
    _projective_search as search,
    _projective_tangents as tangents,
)
from ._launching import has_fast_log, launch, op, tile_size
from ._sentences import Nodes, Words, lanes_of


def nodes_of(arcs: Tensor, mask: Tensor | None, *, single_root: bool) -> Nodes:
    """Return the nodes of charts: words, and the root if it may have any number of words."""
    batch, size, _ = arcs.shape
    shift = int(single_root)
    return Nodes(batch, size - shift, shift, None if mask is None else Words.of(mask, 1))


def kept_size(nodes: Nodes) -> int:
    """Return how many values are kept of an item: weights of splits, and probabilities of spans."""
    return 3 * nodes.splits + 3 * nodes.num_nodes**2


class Inside(NamedTuple):
    """Results of the inside pass."""

    log_partition: Tensor  # (B,)
    options: Tensor  # `kept` with the weights, or pointers (B, 3, N, N); empty unless kept
    chosen: Tensor  # probabilities of the words of the root (B, N), or pointers to them (B,)
    marginals: Tensor  # (B, M, M), with only the arcs of a single root; empty unless kept


def inside(arcs: Tensor, nodes: Nodes, *, keep: bool, best: bool = False) -> Inside:
    """Run the inside pass.

    Args:
        arcs: The scores (B, M, M).
        nodes: The nodes of the charts.
        keep: Whether to write weights of splits.
        best: Whether to compute maxima and pointers in place of sums and weights.
    """
    arcs, (batch, count, shift, _) = arcs.contiguous(), nodes
    masked = nodes.masked(arcs)
    # Sums of scores are exact enough in float64; the sums of exp use pairs of float32.
    dtype = torch.float64 if best else arcs.dtype
    scores = torch.zeros((2, batch, 3, count, count), dtype=dtype, device=arcs.device)
    hi, lo = scores.unbind(0)
    kind = torch.int32 if best else arcs.dtype
    size = [batch, 3, count, count] if best else [batch, kept_size(nodes)] if keep else [0]
    chosen = [batch] if best else [batch, count]
    found = Inside(
        arcs.new_empty(batch),
        arcs.new_empty(size, dtype=kind),
        arcs.new_empty(chosen, dtype=kind),
        torch.zeros_like(arcs) if keep else arcs.new_empty(0),
    )
    fast = {"FAST": not best and has_fast_log(arcs), "BEST": best, "SHIFT": shift}
    for width in nodes.ascending():
        nodes.launch(
            kernels.inside, width, width, (arcs, *masked, hi, lo, found.options), kept_size(nodes),
            KEEP=keep or best, **fast,
        )  # fmt: skip
    given = (arcs, *masked, hi, lo, found.log_partition, found.chosen, found.marginals)
    nodes.launch_rows(kernels.top, batch, count, given, count, KEEP=keep, **fast)
    return found


@op("projective_log_partition")
def projective_log_partition(arcs: Tensor, mask: Tensor | None, single_root: bool) -> Tensor:
    """Compute log Z (B,)."""
    return inside(arcs, nodes_of(arcs, mask, single_root=single_root), keep=False).log_partition


@op("projective_marginals")
def projective_marginals(
    arcs: Tensor, mask: Tensor | None, single_root: bool, keep: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute log Z (B,) and the arc marginals (B, M, M), and return the values kept for the tangent."""
    nodes = nodes_of(arcs, mask, single_root=single_root)
    log_partition, kept, chosen, marginals = inside(arcs, nodes, keep=True)
    given = (kept, chosen, *nodes.masked(kept), marginals)
    for width in nodes.descending():
        nodes.launch(
            kernels.outside,
            width,
            nodes.num_nodes - width,
            given,
            kept_size(nodes),
            SHIFT=nodes.shift,
        )
    return log_partition, marginals, kept if keep else kept.new_empty(0)


@op("projective_tangent")
def projective_tangent(
    marginals: Tensor, kept: Tensor, mask: Tensor | None, direction: Tensor, single_root: bool
) -> Tensor:
    """Compute the derivative of the arc marginals along a direction (B, M, M)."""
    nodes = nodes_of(marginals, mask, single_root=single_root)
    batch, count, shift, _ = nodes
    marginals, masked = marginals.contiguous(), nodes.masked(kept)
    centered, tangent = torch.empty_like(marginals), torch.zeros_like(marginals)
    below = marginals.new_zeros(batch, 4, count, count)
    own, chosen = marginals.new_empty(batch, 3, count, count), marginals.new_empty(batch, count)
    size = count + shift
    given = (marginals, direction.contiguous(), *masked, centered)
    nodes.launch_rows(tangents.center, batch * size, size, given, size)
    for width in nodes.ascending():
        nodes.launch(
            tangents.expect, width, width, (kept, centered, masked[1], below), kept_size(nodes),
            SHIFT=shift,
        )  # fmt: skip
    if single_root:
        given = (marginals, centered, *masked, below, chosen, tangent)
        nodes.launch_rows(tangents.change_roots, batch, count, given, count)
    for width in nodes.descending():
        nodes.launch(
            tangents.share_change, width, count - width,
            (kept, chosen, *masked, below, own, tangent), kept_size(nodes), SHIFT=shift,
        )  # fmt: skip
    return tangent


def _grow(nodes: Nodes, found: Inside, uniforms: Tensor | None, num_trees: int) -> Tensor:
    """Grow trees and return their heads (S, B, n)."""
    batch, count, shift, words = nodes
    shape = (num_trees, batch, count + shift - 1)
    heads = torch.zeros(shape, dtype=torch.int64, device=found.options.device)
    rows, lanes = num_trees * batch, lanes_of(count)
    trees = max(1, tile_size() // lanes)
    launch(
        search.grow, (-(-rows // trees),), found.options, found.chosen,
        found.chosen if uniforms is None else uniforms, *nodes.masked(found.chosen), heads, rows, batch,
        count, kept_size(nodes), 2 * (count - 1), SHIFT=shift, TREES=trees, LANES=lanes,
        MASKED=words is not None, DRAW=uniforms is not None, num_warps=1,
    )  # fmt: skip
    return heads


@op("projective_best")
def projective_best(arcs: Tensor, mask: Tensor | None, single_root: bool) -> tuple[Tensor, Tensor]:
    """Find the heads (B, n) of the best tree, 0 for masked words, and its score (B,)."""
    nodes = nodes_of(arcs, mask, single_root=single_root)
    found = inside(arcs, nodes, keep=False, best=True)
    return _grow(nodes, found, None, 1).squeeze(0), found.log_partition


@op("projective_sample")
def projective_sample(
    arcs: Tensor, mask: Tensor | None, uniforms: Tensor, single_root: bool
) -> tuple[Tensor, Tensor]:
    """Draw the heads (S, B, n) of trees with uniform numbers (S, B, 2 M); return whether any exist (B,)."""
    nodes = nodes_of(arcs, mask, single_root=single_root)
    found = inside(arcs, nodes, keep=True)
    heads = _grow(nodes, found, uniforms.contiguous(), len(uniforms))
    return heads, found.log_partition > -torch.inf
