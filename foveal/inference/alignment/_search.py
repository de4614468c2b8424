"""The best monotone alignments, and exact samples.

Both trace paths back from the last node. For the best paths, the move into a node comes from a
table of pointers written by the inside pass; for a sample, it is drawn from the conditionals.

Axes: N antidiagonals, R rows, B batch, 3 moves, P paths (samples or ranks), k ranks.
References: Needleman & Wunsch 1970.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._recursions import largest
from ._passes import MATCH, SKIP_TARGET, Grid


def _trace(
    grid: Grid, ranks: Int[Tensor, "B P"], k: int, choose: Callable[[int, Tensor], Tensor]
) -> Bool[Tensor, "N 3 R paths"]:
    """Trace paths back and return booleans, True on their moves. `choose(n, entries)` maps the nodes
    (B, P) of the paths on antidiagonal n, as row * k + rank, to their moves, as move * k + rank.
    """
    num_diagonals, _, num_rows, batch = grid.moves.shape
    device = ranks.device
    first = torch.zeros(1, dtype=torch.long, device=device)
    if grid.starts is not None:
        first = grid.starts.any(1).int().argmax(0)
    row, rank = torch.full_like(ranks, num_rows - 1), ranks
    passing = torch.zeros_like(ranks, dtype=torch.bool)  # a match skips an antidiagonal
    moves = torch.arange(3, device=device)[:, None, None, None]
    rows = torch.arange(num_rows, device=device)[:, None, None]
    found = []
    for n in range(num_diagonals - 1, -1, -1):
        chosen = choose(n, row * k + rank)
        move = chosen // k
        entered = ~passing & (n > first).unsqueeze(-1)
        found.append((moves == move) & (rows == row) & entered)
        rank = torch.where(entered, chosen % k, rank)
        row = torch.where(entered & (move != SKIP_TARGET), row - 1, row).clamp(min=0)
        passing = entered & (move == MATCH)
    return torch.stack(found[::-1]).reshape(num_diagonals, 3, num_rows, batch * ranks.shape[1])


class Ranked(NamedTuple):
    """The k best paths, best first; ranks that do not exist score -inf."""

    paths: Bool[Tensor, "N 3 R paths"]
    scores: Float[Tensor, "B k"]


def best(grid: Grid, k: int) -> Ranked:
    """Find the k paths of highest score: each node holds k of them."""
    moves, starts = grid
    _, _, num_rows, batch = moves.shape
    ranks = torch.arange(k, device=moves.device)
    nothing = torch.where(ranks == 0, 0.0, -torch.inf).double()  # the path of no move, once
    never = moves.new_full((1, batch, k), -torch.inf)
    scores = never.expand(num_rows, -1, -1)
    above = above_before = scores
    pointers = []
    for n, move in enumerate(moves.unbind(0)):
        joined = torch.stack([above_before, above, scores], -2) + move.permute(1, 2, 0).unsqueeze(
            -1
        )
        scores, pointer = largest(joined.flatten(-2), k)  # (R, B, k)
        if starts is not None:
            scores = torch.where(starts[n].unsqueeze(-1), nothing, scores)
        elif n == 0:
            scores = torch.cat([nothing.expand(1, batch, k), scores[1:]])
        above_before, above = above, torch.cat([never, scores[:-1]])
        pointers.append(pointer.transpose(0, 1).flatten(1))  # (B, R * k)
    last = ranks.expand(batch, k)
    paths = _trace(grid, last, k, lambda n, entry: pointers[n].gather(-1, entry))
    return Ranked(paths, scores[-1])


def draw(
    grid: Grid,
    weights: Float[Tensor, "N 3 R B"],
    num_samples: int,
    generator: torch.Generator | None,
) -> Bool[Tensor, "N 3 R paths"]:
    """Draw exact samples from the last node back: each move given the node it enters."""
    tables = weights.permute(0, 3, 2, 1)  # (N, B, R, 3)

    def race(n: int, row: Int[Tensor, "B S"]) -> Int[Tensor, "B S"]:
        # argmax(w / e) with e exponential is a draw from w (a race of exponentials).
        drawn = tables[n].gather(1, row.unsqueeze(-1).expand(-1, -1, 3))
        noise = torch.empty_like(drawn, memory_format=torch.contiguous_format)
        return (drawn / noise.exponential_(generator=generator)).argmax(-1)

    ranks = torch.zeros(weights.shape[-1], num_samples, dtype=torch.long, device=weights.device)
    return _trace(grid, ranks, 1, race)
