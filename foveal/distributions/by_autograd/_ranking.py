"""The k best structures, by repeated search for the best structure with required and forbidden parts.

The algorithm divides the structures other than the best one into regions, each with required and
forbidden parts. The next best structure is the best of one of these regions, which is then divided in
turn. With e_1 .. e_m the parts of the best structure of a region:

    structures that lack a part:    require e_1 .. e_{j-1} and forbid e_j           for j = 1 .. m
    structures with further parts:  require e_1 .. e_m and f, forbid f' before f    for each other part f

Axes: R regions, P parts.
References: Murty 1968; Lawler 1972.
"""

import heapq
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ._recursion import Recursion
from ._reductions import preferred_maximum

# Regions searched in one run of the recursion; more need more memory and are not faster.
MOST_REGIONS = 256


class Best(NamedTuple):
    """For each region, the best among the structures with the highest total weight."""

    parts: Bool[Tensor, "R P"]
    weights: Float[Tensor, " R"]
    scores: Float[Tensor, " R"]  # -inf if there is no structure


# items (R,) of the batch, weights (R, P) of parts, forbidden (R, P)
Solve = Callable[[Tensor, Tensor, Tensor], Best]


class Region(NamedTuple):
    """The structures with all required parts and no forbidden parts, and the best of them."""

    item: int
    required: Bool[Tensor, " P"]
    forbidden: Bool[Tensor, " P"]
    best: Bool[Tensor, " P"]
    score: float


def ranked(recursion: Recursion, k: int) -> list[list[Region]]:
    """Find, for each item of the batch, the regions whose best structures are the k best, best first.

    If there are fewer than k structures, it returns fewer regions. The parts are the entries of the
    first potential.
    """
    first = next(iter(recursion.potentials.values())).flatten(1)
    nothing = torch.zeros_like(first, dtype=torch.bool)
    solve = _solver(recursion)
    order = count()  # breaks ties between equal scores
    queues: list[list[tuple[float, int, Region]]] = [[] for _ in first]
    found: list[list[Region]] = [[] for _ in first]
    items = torch.arange(len(first), device=first.device)
    opened = _regions(solve, items, nothing, nothing)
    while True:
        for region in opened:
            heapq.heappush(queues[region.item], (-region.score, next(order), region))
        popped = [
            heapq.heappop(queue)[-1]
            for queue, best in zip(queues, found, strict=True)
            if queue and len(best) < k
        ]
        if not popped:
            return found
        for region in popped:
            found[region.item].append(region)
        opened = _divided(solve, [each for each in popped if len(found[each.item]) < k])


def _solver(recursion: Recursion) -> Solve:
    """Run the recursion with weights in the first half of the batch and scores in the second."""
    first = next(iter(recursion.potentials))

    def solve_some(items: Tensor, weights: Tensor, forbidden: Tensor) -> Best:
        potentials = {}
        for name, potential in recursion.potentials.items():
            scores = potential[items]
            out, weight = scores == -torch.inf, torch.zeros_like(scores)
            if name == first:
                out, weight = out | forbidden.reshape(out.shape), weights.reshape(out.shape)
            both = torch.cat([weight, scores])
            potentials[name] = both.masked_fill(torch.cat([out, out]), -torch.inf)
        twice = items.repeat(2)
        others = {
            name: None if part is None else part[twice] for name, part in recursion.others.items()
        }
        rows = replace(recursion, potentials=potentials, others=others)
        total, used = rows.outcome(preferred_maximum)
        return Best(used[first][: len(items)].flatten(1) > 0, *total.chunk(2))

    def solve(items: Tensor, weights: Tensor, forbidden: Tensor) -> Best:
        rows = zip(*(part.split(MOST_REGIONS) for part in (items, weights, forbidden)), strict=True)
        return Best(*map(torch.cat, zip(*(solve_some(*some) for some in rows), strict=True)))

    return solve


def _regions(
    solve: Solve, items: Int[Tensor, " R"], required: Tensor, forbidden: Tensor
) -> list[Region]:
    """Build the regions (R, P) that have a structure."""
    if not len(items):
        return []
    found = solve(items, required.double(), forbidden)
    exists = (found.weights == required.sum(-1)) & (found.scores > -torch.inf)
    numbers, scores = items.tolist(), found.scores.tolist()
    return [
        Region(numbers[row], required[row], forbidden[row], found.parts[row], scores[row])
        for row in exists.nonzero().flatten().tolist()
    ]


def _divided(solve: Solve, regions: list[Region]) -> list[Region]:
    """Divide the structures other than the best ones into regions."""
    if not regions:
        return []
    rows = [_lacking_a_part(region) for region in regions]
    larger = _has_larger(solve, regions)
    rows += [_with_further_parts(each) for each, has in zip(regions, larger, strict=True) if has]
    return _regions(solve, *map(torch.cat, zip(*rows, strict=True)))


def _lacking_a_part(region: Region) -> tuple[Tensor, Tensor, Tensor]:
    lacked = _each(region.best & ~region.required)
    items = torch.full_like(lacked[:, 0], region.item, dtype=torch.long)
    return items, region.required | _before(lacked), region.forbidden | lacked


def _has_larger(solve: Solve, regions: list[Region]) -> list[bool]:
    """Return whether a structure has all parts of the best one and more; in most families none has."""
    best = torch.stack([region.best for region in regions])
    forbidden = torch.stack([region.forbidden for region in regions])
    items = torch.tensor([region.item for region in regions], device=best.device)
    weights = torch.where(best, best.shape[1] + 1.0, 1.0).double()
    found = solve(items, weights, forbidden)
    return (found.weights > (weights * best).sum(1)).tolist()


def _with_further_parts(region: Region) -> tuple[Tensor, Tensor, Tensor]:
    further = _each(~region.best & ~region.forbidden)
    items = torch.full_like(further[:, 0], region.item, dtype=torch.long)
    return items, region.best | further, region.forbidden | _before(further)


def _each(parts: Bool[Tensor, " P"]) -> Bool[Tensor, "R P"]:
    """Return a row for each of the parts."""
    return torch.eye(len(parts), dtype=torch.bool, device=parts.device)[parts]


def _before(rows: Bool[Tensor, "R P"]) -> Bool[Tensor, "R P"]:
    """Return, for each row, the parts of the rows before it."""
    return (rows.cumsum(0) > 0) & ~rows
