"""The passes of subsets with a score for their size, in PyTorch operations: the reference on any device.

    p(z) = exp( sum_i scores[i] z_i + counts[ |z| ] - log Z )

The items are the leaves of a balanced binary tree. A node holds one number for each count c of
items chosen below it, at most k. A node joins a left and a right part:

    inside    a[c]    = log sum_j exp( left[j] + right[c-j] ),        a leaf: (0, scores[i])
    weights   q[j, c] = exp( left[j] + right[c-j] - a[c] )  =  p( j of them in the left part | c )
    outside   p(j in the left part) = sum_c q[j, c] p(c),    p(r in the right part) = sum_j q[j, j+r] p(j+r)
    tangent   the derivative of p: two linear recursions over the same q

The tree takes O(n k) time and memory, like a recursion item by item, but log n steps instead of n.
Inside scores are in float64; the weights are probabilities, and they and all later values have
the dtype of the result. A masked item is never chosen.

Axes: B batch, n items, m nodes of a level (leading), C = k + 1 counts, S samples, R ranks.
References: Chen & Liu 1997 (recursions); Baker & Harwell 1996 (elementary symmetric functions).
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from ...masking import forbid_padding
from .._derivatives import Solved, Tensors
from .._precision import result_dtype
from .._recursions import keep, largest, softmax_or_zero


def _fit(part: Tensor, size: int, fill: float = 0.0) -> Tensor:
    """Truncate or pad the last axis to a size."""
    return pad(part, (0, size - part.shape[-1]), value=fill)


def _halves(nodes: Tensor, fill: float) -> tuple[Tensor, Tensor]:
    """Split nodes (m, B, ..., d) into left and right parts of the nodes one level up. If their number
    is odd, add a node without items: 0 for the empty subset, and `fill` for all other entries.
    """
    if len(nodes) % 2:
        empty = torch.full_like(nodes[:1], fill)
        empty[:, :, *(0,) * (nodes.ndim - 2)] = 0.0
        nodes = torch.cat([nodes, empty])
    left, right = nodes.chunk(2)
    return left, right


def _shift(right: Tensor, size: int, fill: float) -> Tensor:
    """Return a table with [j, c] = right[c - j] for counts c below `size`, (..., d) -> (..., d, size),
    and with `fill` where c - j is not an index.
    """
    degree = right.shape[-1]
    rows = right.unsqueeze(-2).expand(*right.shape, degree)
    # Reading the flat array with rows that are shorter by one shifts each row one entry further.
    moved = pad(rows, (0, degree), value=fill).flatten(-2)[..., :-degree]
    return _fit(moved.unflatten(-1, (degree, -1)), size, fill)


def _unshift(table: Tensor) -> Tensor:
    """Return [j, r] = table[j, j + r], (..., d, C) -> (..., d, d), with 0 where j + r is not an index."""
    degree = table.shape[-2]
    flat = pad(_fit(table, 2 * degree - 1).flatten(-2), (0, degree))
    return flat.unflatten(-1, (degree, 2 * degree))[..., :degree]


def _allowed(
    scores: Float[Tensor, "B n"], num_counts: int, mask: Bool[Tensor, "B n"] | None
) -> Float[Tensor, "B n"]:
    """Return the scores in float64, with -inf on padding; if k is 0, return -inf for all items, because
    no subset reads their scores.
    """
    if num_counts == 1:
        return torch.full_like(scores, -torch.inf, dtype=torch.float64)
    return forbid_padding(scores.double(), mask)


def _leaves(scores: Float[Tensor, "B n"]) -> Float[Tensor, "n B 2"]:
    """Return (0, score) for each item."""
    return torch.stack([torch.zeros_like(scores), scores], -1).transpose(0, 1)


def _next_size(nodes: Tensor, num_counts: int) -> int:
    """Return the number of counts in the nodes one level up; at least 2, as in the leaves."""
    return min(2 * nodes.shape[-1] - 1, max(num_counts, 2))


def inside(
    scores: Float[Tensor, "B n"],
    counts: Float[Tensor, "#B C"],
    mask: Bool[Tensor, "B n"] | None,
    dtype: torch.dtype,
) -> tuple[Float[Tensor, "B C"], list[Tensor]]:
    """Compute the score of each count of all items, in float64, and the weights (m, B, j, c) of each
    level, leaves first.
    """
    num_counts = counts.shape[-1]
    nodes = _leaves(_allowed(scores, num_counts, mask))
    weights = []
    while len(nodes) > 1:
        left, right = _halves(nodes, -torch.inf)
        joined = left.unsqueeze(-1) + _shift(right, _next_size(nodes, num_counts), -torch.inf)
        nodes = joined.logsumexp(-2)
        # Normalizing by +inf gives weight exp(-inf) = 0 to impossible counts; -inf would give NaN.
        normalizer = torch.where(nodes == -torch.inf, torch.inf, nodes).unsqueeze(-2)
        weights.append((joined - normalizer).to(dtype).exp())
    return _fit(nodes[0], num_counts, -torch.inf) + counts.double(), weights


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    scores, counts = potentials
    dtype = result_dtype(scores)
    return inside(scores, counts, mask, dtype)[0].logsumexp(-1).to(dtype)


def solve(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Solved:
    """Compute log Z, p(count) (B, C), and the weights of every level. An empty tensor between them
    has a row for each item, because the weights do not show whether the number of items is odd.
    """
    scores, counts = potentials
    dtype = result_dtype(scores)
    root, weights = inside(scores, counts, mask, dtype)
    rows = scores.new_empty(scores.shape[1], 0)
    return Solved(root.logsumexp(-1).to(dtype), (softmax_or_zero(root, dtype), rows, *weights))


def marginals(saved: Tensors, mask: Bool[Tensor, "B n"] | None) -> tuple[Tensors, Tensors]:
    """Compute p(item is chosen) (B, n) and p(count) (B, C)."""
    del mask  # masked items already have probability 0
    root, rows, *weights = saved
    levels = outside(root, weights, len(rows))
    found = (levels[0][..., 1].T.clone(), root.clone())
    return found, (root.view_as(root), *(weight.view_as(weight) for weight in weights), *levels)


def _share(passed: Tensor, num_nodes: int) -> Tensor:
    """Sum the table (m, B, j, c) over c for the left parts and along j + r = c for the right parts."""
    return torch.cat([passed.sum(-1), _unshift(passed).sum(-2)])[:num_nodes]


def outside(root: Float[Tensor, "B C"], weights: Sequence[Tensor], num_items: int) -> list[Tensor]:
    """Compute p(count) (m, B, d) of the nodes of every level, leaves first."""
    sizes = [num_items, *(len(weight) for weight in weights)]
    size = weights[-1].shape[-1] if weights else 2
    levels = [_fit(root, size).unsqueeze(0)]
    for weight, num_nodes in zip(reversed(weights), reversed(sizes[:-1]), strict=True):
        levels.append(_share(weight * levels[-1].unsqueeze(-2), num_nodes))
    return levels[::-1]


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B n"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivatives of both marginals, each in the layout of its marginals."""
    del wanted  # the same recursion computes both
    num_levels = len(saved) // 2 - 1
    root, weights, levels = saved[0], saved[1 : num_levels + 1], saved[num_levels + 1 :]
    on_items, on_counts = directions
    chosen = levels[0][..., 1].T
    items = torch.zeros_like(chosen)
    if on_items is not None:
        items = keep(on_items.to(root.dtype), mask)
    counts = None if on_counts is None else on_counts.to(root.dtype)
    items, counts = push(root, weights, levels, items, counts)
    return items, counts


def push(
    root: Float[Tensor, "B C"],
    weights: Sequence[Tensor],
    levels: Sequence[Tensor],
    items: Float[Tensor, "B n"],
    counts: Float[Tensor, "B C"] | None,
) -> tuple[Float[Tensor, "B n"], Float[Tensor, "B C"]]:
    """Compute the derivatives of p(item) and p(count) along a direction g in the scores.

    With G(z) the sum of g over the chosen items, the recursion goes up and then down the tree, and is
    linear in q:

        below[c]  = E[ G below the node | c ] = sum_j q[j, c] joined[j, c]
        joined    = below of the left part at j + below of the right part at c - j
        p' of both parts receives q[j, c] ( p'[c] + p[c] (joined[j, c] - below[c]) )

    Subtracting a constant from g at all items changes G by an amount that depends only on the count,
    and leaves all conditionals unchanged. Subtracting the mean of g over the chosen items keeps the
    numbers small; the root adds it again.
    """
    chosen = levels[0][..., 1].T
    expected = chosen.sum(-1, keepdim=True)
    mean = (chosen * items).sum(-1, keepdim=True) / torch.where(expected == 0, 1.0, expected)
    nodes = _leaves(items - mean)
    below, joined = [], []
    for weight in weights:
        left, right = _halves(nodes, 0.0)
        joined.append(left.unsqueeze(-1) + _shift(right, weight.shape[-1], 0.0))
        nodes = (weight * joined[-1]).sum(-2)
        below.append(nodes)

    size = torch.arange(root.shape[-1], dtype=root.dtype, device=root.device)
    total = _fit(nodes[0], root.shape[-1]) + mean * size
    if counts is not None:
        total = total + counts
    along_counts = root * (total - (root * total).sum(-1, keepdim=True))
    along = _fit(along_counts, nodes.shape[-1]).unsqueeze(0)
    for level in reversed(range(len(weights))):
        probability = levels[level + 1]
        change = along - probability * below[level]
        passed = torch.addcmul(change.unsqueeze(-2), joined[level], probability.unsqueeze(-2))
        along = _share(weights[level] * passed, len(levels[level]))
    return along[..., 1].T, along_counts


class Ranked(NamedTuple):
    """The R best subsets, best first; ranks that do not exist score -inf."""

    values: Bool[Tensor, "R B n"]
    scores: Float[Tensor, "R B"]


def best(
    scores: Float[Tensor, "B n"],
    counts: Float[Tensor, "#B C"],
    mask: Bool[Tensor, "B n"] | None,
    num_ranks: int,
) -> Ranked:
    """Find the subsets of highest score: each node holds R of them for each count."""
    # At least (a + 1) (b + 1) - 1 other sums are no worse than the sum of ranks a and b (from 0).
    ranks = range(num_ranks)
    pairs = [(a, b) for a in ranks for b in ranks if (a + 1) * (b + 1) <= num_ranks]
    first, second = torch.tensor(pairs, device=scores.device).T
    nodes = _leaves(_allowed(scores, counts.shape[-1], mask)).unsqueeze(-2)  # (m, B, R, d)
    nodes = pad(nodes, (0, 0, 0, num_ranks - 1), value=-torch.inf)
    sizes, pointers = [], []
    while len(nodes) > 1:
        sizes.append(nodes.shape[::3])
        left, right = _halves(nodes, -torch.inf)
        shifted = _shift(right, _next_size(nodes, counts.shape[-1]), -torch.inf)
        joined = left[:, :, first].unsqueeze(-1) + shifted[:, :, second]  # (m, B, pairs, j, c)
        ranked, pointer = largest(joined.flatten(2, 3).transpose(-1, -2), num_ranks)
        nodes = ranked.transpose(-1, -2)
        pointers.append(pointer)  # (m, B, c, R)
    root = _fit(nodes[0], counts.shape[-1], -torch.inf) + counts.double().unsqueeze(-2)
    total, place = largest(root.flatten(1), num_ranks)
    rank, count = place // counts.shape[-1], place % counts.shape[-1]

    rank, count = rank.unsqueeze(0), count.clamp(max=nodes.shape[-1] - 1).unsqueeze(0)
    for (num_nodes, degree), pointer in zip(reversed(sizes), reversed(pointers), strict=True):
        chosen = pointer.flatten(2).gather(-1, count * num_ranks + rank)
        pair, on_left = chosen // degree, chosen % degree
        # Ranks that do not exist may point anywhere.
        on_right = (count - on_left).clamp(0, degree - 1)
        count = torch.cat([on_left, on_right])[:num_nodes]
        rank = torch.cat([first[pair], second[pair]])[:num_nodes]
    return Ranked((count == 1).permute(2, 1, 0), total.T)


def draw(
    root: Float[Tensor, "B C"],
    weights: Sequence[Tensor],
    num_items: int,
    num_samples: int,
    generator: torch.Generator | None,
) -> Bool[Tensor, "S B {num_items}"]:
    """Draw exact samples: first the count of all items, then the count of the left part of each node.

    argmax( w / e ) with e exponential is a draw from weights w (a race of exponentials).
    """

    def race(chances: Tensor) -> Int[Tensor, "..."]:
        noise = torch.empty_like(chances).exponential_(generator=generator)
        return (chances / noise).argmax(-1)

    count = race(root.expand(num_samples, 1, -1, -1))  # (S, m, B)
    sizes = [num_items, *(len(weight) for weight in weights)]
    columns = torch.arange(len(root), device=root.device)
    for weight, num_nodes in zip(reversed(weights), reversed(sizes[:-1]), strict=True):
        rows = torch.arange(len(weight), device=root.device).unsqueeze(-1)
        # An impossible row has weight 0 everywhere, and its count may exceed the counts of the nodes.
        count = count.clamp(max=weight.shape[-1] - 1)
        on_left = race(weight.transpose(-1, -2)[rows, columns, count])
        count = torch.cat([on_left, (count - on_left).clamp(min=0)], 1)[:, :num_nodes]
    return (count == 1).transpose(1, 2)
