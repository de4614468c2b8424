"""The passes of the monotone alignment, in PyTorch operations: the reference on any device.

A path leads from node (0, 0) to node (S, T) of a grid. Three moves enter a node (i, j):

    match        from (i-1, j-1)
    skip source  from (i-1, j)
    skip target  from (i, j-1)

    inside        a[v]    = log sum_m exp( a[from(v, m)] + moves[v, m] ),   a[0, 0] = 0
    conditionals  w[v, m] = exp( a[from(v, m)] + moves[v, m] - a[v] )  =  p( move m | the path visits v )
    outside       p[u]    = sum over moves m out of u, into v, of w[v, m] p[v]
    tangent       two linear recursions over the same w

All nodes of an antidiagonal n = i + j are computed at once, from the two before it: arrays are
(N, 3, R, B) with N = S + T + 1 antidiagonals and R = S + 1 rows, and hold node (i, n - i) at
[n, :, i]. The log-space recursion is in float64; the conditionals and all later values have the
dtype of the result. Real rows and columns are moved to the end. Every path then ends at (S, T),
and the mask only determines where it starts. Padding is never read.

Axes: N antidiagonals, R rows, C = T + 1 columns, B batch, 3 moves in the order above. A mask is
(B, S + T): source items, then target items.
References: Needleman & Wunsch 1970; Mensch & Blondel 2018 (tangents).
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from .._compaction import order, places, take
from .._derivatives import Solved, Tensors
from .._precision import result_dtype

MATCH, SKIP_SOURCE, SKIP_TARGET = range(3)


class Grid(NamedTuple):
    """Prepared log-potentials: by antidiagonals, real rows and columns last, unread entries forbidden."""

    moves: Float[Tensor, "N 3 R B"]  # float64
    starts: Bool[Tensor, "N R B"] | None  # True where a path starts; None: at the first node


def node_masks(
    mask: Bool[Tensor, "B items"], num_rows: int
) -> tuple[Bool[Tensor, "B R"], Bool[Tensor, "B C"]]:
    """Return the real rows and columns of nodes: the first one, and one for each real item."""
    source, target = mask[:, : num_rows - 1], mask[:, num_rows - 1 :]
    return pad(source, (1, 0), value=True), pad(target, (1, 0), value=True)


def prepare(moves: Float[Tensor, "B R C 3"], mask: Bool[Tensor, "B items"] | None) -> Grid:
    """Sort by antidiagonals, put real rows and columns last, and forbid entries that no path reads."""
    _, num_rows, num_columns, _ = moves.shape
    row = torch.arange(num_rows, device=moves.device).unsqueeze(-1)
    column = torch.arange(num_columns, device=moves.device)
    if mask is None:
        starts, first_row, first_column = None, torch.zeros_like(row[0]), torch.zeros_like(row[0])
    else:
        rows, columns = node_masks(mask, num_rows)
        moves = _arrange(moves, mask)
        first_row, first_column = num_rows - rows.sum(-1), num_columns - columns.sum(-1)
        antidiagonal = torch.arange(num_rows + num_columns - 1, device=moves.device)
        on_first = antidiagonal[:, None, None] == first_row + first_column
        starts = on_first & (row == first_row)
    first_row, first_column = first_row[:, None, None], first_column[:, None, None]
    below, within_rows = row > first_row, row >= first_row  # (B, R, 1)
    beyond, within_columns = column > first_column, column >= first_column  # (B, 1, C)
    allowed = torch.stack([below & beyond, below & within_columns, within_rows & beyond], -1)
    return Grid(
        to_antidiagonals(torch.where(allowed, moves.double(), -torch.inf), -torch.inf), starts
    )


def _arrange(part: Tensor, mask: Bool[Tensor, "B items"]) -> Tensor:
    """Move the real rows and columns of `part` (B, R, C, ...) to the end."""
    rows, columns = node_masks(mask, part.shape[1])
    return take(take(part, order(rows), 1), order(columns), 2)


def to_antidiagonals(part: Float[Tensor, "B R C 3"], beyond: float) -> Float[Tensor, "N 3 R B"]:
    """Move part[i, n - i] to [n, i]; fill with `beyond` where n - i is not a column.

    The function pads each row by R entries and reads the flat array with rows that are shorter by 1.
    This shifts each row one entry further to the right than the row above.
    """
    _, num_rows, num_columns, _ = part.shape
    wide = pad(part.permute(3, 0, 1, 2), (0, num_rows), value=beyond).flatten(-2)
    num_diagonals = num_rows + num_columns - 1
    skewed = wide[..., : num_rows * num_diagonals].unflatten(-1, (num_rows, num_diagonals))
    return skewed.permute(3, 0, 2, 1).contiguous()


def from_antidiagonals(part: Tensor, mask: Bool[Tensor, "B items"] | None) -> Tensor:
    """Convert (N, 3, R, B) back to (B, R, C, 3) in the order of the input, with 0 on padding."""
    num_diagonals, _, num_rows, _ = part.shape
    flat = part.permute(3, 1, 2, 0).flatten(-2)
    wide = pad(flat, (0, num_rows)).unflatten(-1, (num_rows, num_diagonals + 1))
    found = wide[..., : num_diagonals - num_rows + 1].permute(0, 2, 3, 1)
    if mask is None:
        return found
    rows, columns = node_masks(mask, num_rows)
    found = take(take(found, places(rows), 1), places(columns), 2)
    real = rows.unsqueeze(-1) & columns.unsqueeze(-2)
    return torch.where(real.unsqueeze(-1), found, torch.zeros_like(found))


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B items"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    (moves,) = potentials
    return inside(prepare(moves, mask))[-1, -1].to(result_dtype(moves))


def solve(potentials: Tensors, mask: Bool[Tensor, "B items"] | None) -> Solved:
    """Compute the log-partition; save the conditionals, and 1 for items with a path, else 0."""
    (moves,) = potentials
    dtype = result_dtype(moves)
    grid = prepare(moves, mask)
    alphas = inside(grid)
    total = alphas[-1, -1]
    saved = (conditionals(grid, alphas, dtype), (total > -torch.inf).to(dtype))
    return Solved(total.to(dtype), saved)


def inside(grid: Grid) -> Float[Tensor, "N R B"]:
    """Compute the log-sum over all paths to each node."""
    moves, starts = grid
    never = torch.full_like(moves[0, 0, :1], -torch.inf)
    alpha = torch.full_like(moves[0, 0], -torch.inf)
    above = above_before = alpha  # row i - 1 of the previous two antidiagonals
    alphas = []
    for n, move in enumerate(moves.unbind(0)):
        match, skip_source, skip_target = (torch.stack([above_before, above, alpha]) + move).unbind(
            0
        )
        alpha = torch.logaddexp(torch.logaddexp(match, skip_source), skip_target)
        if starts is not None:
            alpha = torch.where(starts[n], 0.0, alpha)
        elif n == 0:
            alpha = torch.cat([torch.zeros_like(never), alpha[1:]])
        above_before, above = above, torch.cat([never, alpha[:-1]])
        alphas.append(alpha)
    return torch.stack(alphas)


def conditionals(
    grid: Grid, alphas: Float[Tensor, "N R B"], dtype: torch.dtype
) -> Float[Tensor, "N 3 R B"]:
    """Compute p(move | the path visits the node that the move enters), 0 for unreachable nodes."""
    # An unreachable entry is normalized by +inf, which gives weight exp(-inf) = 0; subtracting
    # its inside score of -inf would give NaN.
    normalizer = torch.where(alphas == -torch.inf, torch.inf, alphas).unsqueeze(1)
    return (_at_origins(alphas, -torch.inf) + grid.moves - normalizer).to(dtype).exp()


def _at_origins(nodes: Float[Tensor, "N R B"], beyond: float) -> Float[Tensor, "N 3 R B"]:
    """Return the value at the node that each move leaves."""
    wide = pad(nodes, (0, 0, 1, 0, 2, 0), value=beyond)
    return torch.stack([wide[:-2, :-1], wide[1:-1, :-1], wide[1:-1, 1:]], 1)


def marginals(saved: Tensors, mask: Bool[Tensor, "B items"] | None) -> tuple[Tensors, Tensors]:
    """Compute the move marginals (B, R, C, 3)."""
    weights, possible = saved
    nodes = outside(weights, possible)
    moves = weights * nodes.unsqueeze(1)
    return (from_antidiagonals(moves, mask),), (weights.view_as(weights), nodes)


def outside(
    weights: Float[Tensor, "N 3 R B"], possible: Float[Tensor, " B"]
) -> Float[Tensor, "N R B"]:
    """Compute p(the path visits a node), from the last node back."""
    last = torch.cat([torch.zeros_like(weights[0, 0, 1:]), possible.unsqueeze(0)])
    nodes = _backward(weights, torch.zeros_like(weights), last)
    # A path visits each antidiagonal or skips it with a match, so the total is 1. The rounding error
    # grows with every step: normalize. If there is no path, the total is 0 and stays 0.
    total = _crossing(weights * nodes.unsqueeze(1), nodes)
    return nodes / torch.where(total > 0, total, 1.0).unsqueeze(1)


def _crossing(
    moves: Float[Tensor, "N 3 R B"], nodes: Float[Tensor, "N R B"]
) -> Float[Tensor, "N B"]:
    """Sum over the nodes of each antidiagonal and over the matches that skip it."""
    return nodes.sum(1) + pad(moves[1:, MATCH].sum(1), (0, 0, 0, 1))


def _backward(
    weights: Float[Tensor, "N 3 R B"],
    own: Float[Tensor, "N 3 R B"],
    last: Float[Tensor, "R B"],
) -> Float[Tensor, "N R B"]:
    """Compute x[u] = sum over moves m out of u, into v, of own[v, m] + w[v, m] x[v]; `last` is x on
    the last antidiagonal.
    """
    zero = torch.zeros_like(last[:1])
    found = [last]
    matches = torch.zeros_like(last)  # into the antidiagonal after the next
    for weight, given in zip(
        weights.flip(0)[:-1].unbind(0), own.flip(0)[:-1].unbind(0), strict=True
    ):
        match, skip_source, skip_target = torch.addcmul(given, weight, found[-1]).unbind(0)
        below = torch.cat([(matches + skip_source)[1:], zero])
        found.append(below + skip_target)
        matches = match
    return torch.stack(found[::-1])


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B items"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivative of the move marginals along a direction g in the potentials.

    With G(path) the sum of g over the moves of a path, the derivative is Cov(move, G). `_center`
    makes E[G] = 0; the covariance then follows from the expected G before and after a node:

        past[v]   = E[ G up to v | v ]  = sum_m w[v, m] (g[v, m] + past[from(v, m)])
        future[u] = E[ G after u; u ]   = sum over moves m out of u, into v, of p[v] w[v, m] g[v, m] + w[v, m] future[v]
    """
    del wanted  # there is one potential
    weights, nodes = saved
    (along,) = directions
    assert along is not None
    along = along if mask is None else _arrange(along, mask)
    # Set the direction to 0 on entries that no path reads, where a gradient may be nonzero.
    direction = to_antidiagonals(along.to(weights.dtype), 0.0)
    direction = torch.where(weights > 0, direction, 0.0)
    moves = weights * nodes.unsqueeze(1)
    direction = _center(direction, moves)

    joint = moves * direction
    past = _forward(weights, (weights * direction).sum(1))
    future = _backward(weights, joint, torch.zeros_like(nodes[0]))
    found = torch.addcmul(joint, moves, _at_origins(past, 0.0))
    found = torch.addcmul(found, weights, future.unsqueeze(1))
    # The total over an antidiagonal is constant, so its derivative is 0. Removing the rounding error
    # keeps it from growing with the size of the grid.
    rest = _crossing(found, found.sum(1))
    return (from_antidiagonals(found - moves * rest[:, None, None], mask),)


def _center(
    direction: Float[Tensor, "N 3 R B"], moves: Float[Tensor, "N 3 R B"]
) -> Float[Tensor, "N 3 R B"]:
    """Subtract from each move the mean of G over the antidiagonals that it crosses: one, or two for a
    match. Every path crosses all antidiagonals, so each path loses the same amount, E[G]. The
    remaining sums stay near 0 for paths of any length, as float32 requires.
    """
    gained = (moves * direction).sum((1, 2))
    before = pad(gained[:-1], (0, 0, 1, 0))
    return direction - torch.stack([gained + before, gained, gained], 1).unsqueeze(2)


def _forward(
    weights: Float[Tensor, "N 3 R B"], own: Float[Tensor, "N R B"]
) -> Float[Tensor, "N R B"]:
    """Compute x[v] = own[v] + sum_m w[v, m] x[from(v, m)]."""
    zero = torch.zeros_like(own[0, :1])
    node = torch.zeros_like(own[0])
    above = above_before = node
    found = []
    for weight, given in zip(weights.unbind(0), own.unbind(0), strict=True):
        node = given + (weight * torch.stack([above_before, above, node])).sum(0)
        above_before, above = above, torch.cat([zero, node[:-1]])
        found.append(node)
    return torch.stack(found)
