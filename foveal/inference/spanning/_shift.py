"""Shifting of arc scores to a range in which the elimination of `_passes` loses no digits.

Each word has one head, so its best score can be subtracted from the scores of all its arcs; the same
holds for the root arcs if exactly one is used. A shifted score far below 0, such as a sentinel of
-1e9 or the lowest float, would swamp other scores in sums of logarithms. Such an arc is forbidden
if that changes nothing: if there is a tree without such arcs, and the weight of all trees with one
is negligible.

Axes: B batch, n words, m = n + 1 words and the root, which has index 0.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

# In sums with scores of this size, float64 keeps twelve digits after the decimal point.
_FAR = -1e4
# Its exp is negligible next to 1 in float64.
_NOTHING = -40.0


class Shifted(NamedTuple):
    """Scores whose highest is 0 for each word, and the amount subtracted from the score of each tree."""

    arcs: Float[Tensor, "B m m"]
    total: Float[Tensor, " B"]


def shift(
    arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B m-1"] | None, *, single_root: bool
) -> Shifted:
    """Subtract the amount that all trees share, and forbid scores that are too low to matter."""
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
        # Add the best root arc with its unshifted score: the best of the other arcs of its word, which
        # it replaces, may be a sentinel that would swamp it.
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
    """Return the scores by head and word, with -inf on arcs that no tree contains."""
    size = arcs.shape[-1]
    unread = torch.eye(size, dtype=torch.bool, device=arcs.device)[:, 1:]
    if mask is not None:
        padding = ~mask
        unread = unread | padding.unsqueeze(1) | pad(padding, (1, 0)).unsqueeze(-1)
    return torch.where(unread, -torch.inf, arcs[..., 1:])


def _forbid_hopeless(
    scores: Float[Tensor, "B m n"], mask: Bool[Tensor, "B n"] | None, *, single_root: bool
) -> Float[Tensor, "B m n"]:
    """Replace scores far below 0 by -inf if a tree without them outweighs all trees with one."""
    n = scores.shape[-1]
    far = scores < _FAR
    # The lowest weight of a tree without far arcs, compared with (n+1)^n trees with one.
    least = n * torch.where(far, 0.0, scores).amin((1, 2))
    most = torch.where(far, scores, -torch.inf).amax((1, 2)) + n * math.log(n + 1)
    is_nothing = most - least < _NOTHING
    hopeless = is_nothing & _has_tree(scores >= _FAR, mask, single_root=single_root)
    return torch.where(hopeless[:, None, None] & far, -torch.inf, scores)


def _has_tree(
    allowed: Bool[Tensor, "B m n"], mask: Bool[Tensor, "B n"] | None, *, single_root: bool
) -> Bool[Tensor, " B"]:
    """Return whether allowed arcs lead from the root to all words, through one root arc or several."""
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
