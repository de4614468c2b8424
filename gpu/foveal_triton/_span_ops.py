"""The ops of bracketings; each has the arguments of the op of `foveal_native` of the same name.

Each pass takes one launch for each width of spans.

Axes: B batch, n words, S samples.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from . import _span_kernels as kernels, _span_search as search, _span_tangents as tangents
from ._launching import has_fast_log, launch, op, tile_size
from ._sentences import Nodes, Words, lanes_of


def nodes_of(spans: Tensor, mask: Tensor | None) -> Nodes:
    """Return the words of a batch (B, n, n)."""
    batch, count, _ = spans.shape
    return Nodes(batch, count, 0, None if mask is None else Words.of(mask, 0))


def kept_size(nodes: Nodes) -> int:
    """Return how many values are kept of an item: weights of splits, and probabilities of spans."""
    return nodes.splits + nodes.num_nodes**2


class Inside(NamedTuple):
    """Results of the inside pass."""

    log_partition: Tensor  # (B,)
    options: Tensor  # `kept` with the weights, or pointers (B, n, n); empty unless kept


def inside(spans: Tensor, nodes: Nodes, *, keep: bool, best: bool = False) -> Inside:
    """Run the inside pass.

    Args:
        spans: The scores (B, n, n).
        nodes: The words.
        keep: Whether to write weights of splits.
        best: Whether to compute maxima and pointers in place of sums and weights.
    """
    spans, (batch, count, _, _) = spans.contiguous(), nodes
    # Sums of scores are exact enough in float64; the sums of exp use pairs of float32.
    dtype = torch.float64 if best else spans.dtype
    scores = torch.empty((2, batch, count, count), dtype=dtype, device=spans.device)
    size = [batch, count, count] if best else [batch, kept_size(nodes)] if keep else [0]
    # The empty sentence has one bracketing, of score 0.
    log_partition = spans.new_zeros(batch)
    options = spans.new_empty(size, dtype=torch.int32 if best else spans.dtype)
    given = (spans, *nodes.masked(spans), *scores.unbind(0), options, log_partition)
    for width in range(count):
        nodes.launch(
            kernels.inside, width, width, given, kept_size(nodes), KEEP=keep or best, BEST=best,
            FAST=not best and has_fast_log(spans),
        )  # fmt: skip
    return Inside(log_partition, options)


@op("span_log_partition")
def span_log_partition(spans: Tensor, mask: Tensor | None) -> Tensor:
    """Compute log Z (B,)."""
    return inside(spans, nodes_of(spans, mask), keep=False).log_partition


@op("span_marginals")
def span_marginals(spans: Tensor, mask: Tensor | None, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Compute log Z (B,) and the span marginals (B, n, n), and return the values kept for the tangent."""
    nodes = nodes_of(spans, mask)
    log_partition, kept = inside(spans, nodes, keep=True)
    marginals = torch.zeros(spans.shape, dtype=spans.dtype, device=spans.device)
    given = (kept, log_partition, *nodes.masked(kept), marginals)
    for width in range(nodes.num_nodes - 1, -1, -1):
        nodes.launch(kernels.outside, width, nodes.num_nodes - width, given, kept_size(nodes))
    return log_partition, marginals, kept if keep else kept.new_empty(0)


@op("span_tangent")
def span_tangent(kept: Tensor, mask: Tensor | None, direction: Tensor) -> Tensor:
    """Compute the derivative of the span marginals along a direction (B, n, n)."""
    nodes = nodes_of(direction, mask)
    batch, count, size = nodes.batch, nodes.num_nodes, kept_size(nodes)
    direction, masked = direction.contiguous(), nodes.masked(kept)
    means, below = direction.new_empty(batch), direction.new_zeros(batch, 2, count, count)
    own, tangent = direction.new_empty(batch, count, count), torch.zeros_like(direction)
    given = (kept, direction, *masked, means)
    nodes.launch_rows(tangents.mean_of, batch, count, given, count, size)
    given = (kept, direction, means, *masked, below)
    for width in nodes.ascending():
        nodes.launch(tangents.expect, width, width, given, size)
    given = (kept, *masked, below, own, tangent)
    for width in nodes.descending():
        nodes.launch(tangents.share_change, width, count - width, given, size)
    return tangent


def _unfold(nodes: Nodes, options: Tensor, uniforms: Tensor | None, num_trees: int) -> Tensor:
    """Unfold trees (S, B, n, n), True on their spans."""
    shape = (num_trees, nodes.batch, nodes.num_nodes, nodes.num_nodes)
    chosen = torch.zeros(shape, dtype=torch.uint8, device=options.device)
    rows, lanes = num_trees * nodes.batch, lanes_of(nodes.num_nodes)
    trees = max(1, tile_size() // lanes)
    launch(
        search.unfold, (-(-rows // trees),), options, options if uniforms is None else uniforms,
        *nodes.masked(options), chosen, rows, nodes.batch, nodes.num_nodes, kept_size(nodes), TREES=trees,
        LANES=lanes, MASKED=nodes.words is not None, DRAW=uniforms is not None, num_warps=1,
    )  # fmt: skip
    return chosen.view(torch.bool)


@op("span_best")
def span_best(spans: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Find the best bracketing (B, n, n), True on its spans, and its score (B,)."""
    nodes = nodes_of(spans, mask)
    scores, pointers = inside(spans, nodes, keep=False, best=True)
    return _unfold(nodes, pointers, None, 1).squeeze(0), scores


@op("span_sample")
def span_sample(spans: Tensor, mask: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draw bracketings (S, B, n, n) with uniform numbers (S, B, n); return whether any exist (B,)."""
    nodes = nodes_of(spans, mask)
    log_partition, kept = inside(spans, nodes, keep=True)
    return _unfold(nodes, kept, uniforms.contiguous(), len(uniforms)), log_partition > -torch.inf
