"""Scores of arcs in a range that the elimination of `_spanning_passes` computes with, digit for digit.

Each word has one head, so its best score can be taken off all scores of its arcs; the same holds for
the root's arcs where exactly one is used. What is then far below 0, such as a sentinel of -1e9 or
the lowest float, would drown other scores in sums of logarithms. It is forbidden where that changes
nothing: where there is a tree without such an arc, against which all trees with one weigh nothing.

Axes: B batch, n words, m = n + 1 words and the root, which has index 0.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

# In sums with scores this far below 0, float64 keeps twelve digits behind the point.
_FAR = -1e4
# exp of it is nothing beside 1 in float64.
_NOTHING = -40.0


class Shifted(NamedTuple):
    """Scores with a highest of 0 for each word, and what was taken off the score of every tree."""

    arcs: Float[Tensor, "B m m"]
    total: Float[Tensor, " B"]


def shift(
    arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B m-1"] | None, *, single_root: bool
) -> Shifted:
    """Take off what all trees share, and forbid what is too low to matter."""
    if arcs.shape[-1] == 1:
        return Shifted(arcs, arcs.new_zeros(len(arcs)))
    scores = _only_read(arcs, mask)
    root = scores[:, 0]
    best = scores[:, 1:].amax(1) if single_root else scores.amax(1)
    if single_root:
        best = torch.where(best == -torch.inf, root, best)
    best = torch.where(best == -torch.inf, 0.0, best)
    moved, total = scores - best.unsqueeze(1), best.sum(-1)
    if single_root:
        highest, chosen = moved[:, 0].max(-1)
        # The best root arc counts with its own score: the best of its word's other arcs, which it
        # stands in for, may be a sentinel that would drown it.
        words = torch.arange(root.shape[-1], device=root.device)
        own = torch.where(words == chosen.unsqueeze(-1), root, best).sum(-1)
        total = torch.where(highest == -torch.inf, total, own)
        highest = torch.where(highest == -torch.inf, 0.0, highest)
        moved = torch.cat([(moved[:, 0] - highest.unsqueeze(-1)).unsqueeze(1), moved[:, 1:]], 1)
    moved = _forbid_hopeless(moved, mask, single_root=single_root)
    return Shifted(pad(moved, (1, 0)), total)


def _only_read(
    arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B m-1"] | None
) -> Float[Tensor, "B m m-1"]:
    """Scores by head and word, -inf where no tree has an arc."""
    size = arcs.shape[-1]
    unread = torch.eye(size, dtype=torch.bool, device=arcs.device)[:, 1:]
    if mask is not None:
        padding = ~mask
        unread = unread | padding.unsqueeze(1) | pad(padding, (1, 0)).unsqueeze(-1)
    return torch.where(unread, -torch.inf, arcs[..., 1:])


def _forbid_hopeless(
    scores: Float[Tensor, "B m n"], mask: Bool[Tensor, "B n"] | None, *, single_root: bool
) -> Float[Tensor, "B m n"]:
    """-inf in place of scores far below 0, where a tree without them outweighs all with one."""
    n = scores.shape[-1]
    far = scores < _FAR
    # The worst that a tree without far arcs can weigh, against (n+1)^n trees with one.
    least = n * torch.where(far, 0.0, scores).amin((1, 2))
    most = torch.where(far, scores, -torch.inf).amax((1, 2)) + n * math.log(n + 1)
    is_nothing = most - least < _NOTHING
    hopeless = is_nothing & _has_tree(scores >= _FAR, mask, single_root=single_root)
    return torch.where(hopeless[:, None, None] & far, -torch.inf, scores)


def _has_tree(
    allowed: Bool[Tensor, "B m n"], mask: Bool[Tensor, "B n"] | None, *, single_root: bool
) -> Bool[Tensor, " B"]:
    """Whether allowed arcs lead from the root, by one arc of it or by any number, to all words."""
    n = allowed.shape[-1]
    first = allowed[:, 0]
    links = allowed[:, 1:] | torch.eye(n, dtype=torch.bool, device=allowed.device)
    if mask is not None:  # padding need not be reached
        links = links | ~mask.unsqueeze(1)
    reached = links.float()
    for _ in range((n - 1).bit_length()):
        reached = (reached @ reached > 0).float()
    if single_root:
        return (first & (reached > 0).all(-1)).any(-1)
    return (first.float().unsqueeze(1) @ reached > 0).squeeze(1).all(-1)
