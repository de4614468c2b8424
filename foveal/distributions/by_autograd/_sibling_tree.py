"""A projective dependency tree that also scores pairs of adjacent siblings.

    score(tree) = sum over words d of arcs[head of d, d] + siblings[head of d, s, d]
    s = the next dependent of the same head between d and the head; the head itself if d is the innermost

Time is O(n^3).

Axes: *batch any leading shape, B batch, n words, m = n + 1 words and the root.
References: Eisner 1996; McDonald & Pereira 2006 (the algorithm).
"""

from dataclasses import dataclass, field
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot, pad
from typing_extensions import override

from ...inference._compaction import order, take
from .._checks import require_labels
from ._log_partition import LogPartitionDistribution
from ._reductions import Reduction


@final
@dataclass(frozen=True, eq=False)
class SiblingTree(LogPartitionDistribution):
    """A projective dependency tree.

    A value is the head of each word `(..., n)`, 0 for the root and -1 on padding. A word outside `mask` is
    skipped.

    Args:
        arcs: `arcs[h, d]` scores head h of word d, as in `ProjectiveTree`.
        siblings: `siblings[h, s, d]` is added if s is the next dependent of h on the way from d to h, and
            `siblings[h, h, d]` if there is none.
        single_root: Whether exactly one word is attached to the root.
        mask: True on real words; by default, all are real.

    Examples:
        >>> from foveal.distributions import SiblingTree
        >>> arcs, siblings = torch.zeros(4, 4), torch.zeros(4, 4, 4)
        >>> siblings[1, 2, 3] = 2.0              # 2 and 3 like to hang from 1 together
        >>> tree = SiblingTree(arcs, siblings)
        >>> tree.argmax()
        tensor([0, 1, 1])
        >>> tree.log_partition()                 # log(6 + e^2): 7 trees have one root
        tensor(2.5944)
    """

    _is_boolean: ClassVar[bool] = False

    arcs: Float[Tensor, "*#batch m m"]
    siblings: Float[Tensor, "*#batch m m m"]
    single_root: bool = field(default=True, kw_only=True)
    mask: Bool[Tensor, "*#batch m-1"] | None = field(default=None, kw_only=True)

    axes: ClassVar[dict[str, str]] = {
        "arcs": "n+1 n+1",
        "siblings": "n+1 n+1 n+1",
        "mask": "n",
    }

    @override
    def log_partition_of(
        self,
        logsumexp: Reduction,
        arcs: Float[Tensor, "B m m"],
        siblings: Float[Tensor, "B m m m"],
        mask: Bool[Tensor, "B n"] | None,
    ) -> Float[Tensor, " B"]:
        """Run the inside algorithm.

        `right[w][:, i]` sums the trees over i to i + w whose head is i, and `left` the trees whose head
        is the other end; `out` and `back` have an arc between the ends, `between` two siblings at the ends.
        """
        arcs, siblings, length = self._readable(arcs, siblings, mask)
        none = arcs.new_zeros(arcs.shape[:2])
        right, left, out, back, between = [none], [none], [none], [none], [none]
        for width, (after, before) in enumerate(_by_width(siblings), start=1):
            splits, inner = range(width), range(1, width)
            halves = _joined(right, left, splits, width - 1, width)
            between.append(logsumexp(halves, -1))
            chains = _joined(out, between, inner, width, width)
            chains = torch.cat([halves[..., :1], chains], -1) + after
            out.append(arcs.diagonal(width, 1, 2) + logsumexp(chains, -1))
            chains = _joined(between, back, inner, width, width)
            chains = torch.cat([chains, halves[..., -1:]], -1) + before
            back.append(arcs.diagonal(-width, 1, 2) + logsumexp(chains, -1))
            left.append(logsumexp(_joined(left, back, splits, width, width), -1))
            ends = range(1, width + 1)
            right.append(logsumexp(_joined(out, right, ends, width, width), -1))
        whole = torch.stack([sums[:, 0] for sums in right], 1)
        return take(whole, length.unsqueeze(1))[:, 0]

    def _readable(
        self, arcs: Tensor, siblings: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Int[Tensor, " B"]]:
        """Return the scores with real words first, -inf on arcs to the root and to padding, and the lengths."""
        size = arcs.shape[1]
        real = arcs.new_ones(len(arcs), size, dtype=torch.bool)
        if mask is not None:
            real = pad(mask, (1, 0), value=True)
            moved = order(~real)
            arcs = take(take(arcs, moved, 1), moved, 2)
            siblings = take(take(take(siblings, moved, 1), moved, 2), moved, 3)
            real = take(real, moved)
        word = real & (torch.arange(size, device=arcs.device) > 0)
        allowed = real.unsqueeze(2) & word.unsqueeze(1)
        arcs = arcs.masked_fill(~allowed, -torch.inf)
        triples = allowed.unsqueeze(2) & real[:, None, :, None]
        if self.single_root:  # the root has at most one dependent
            triples[:, 0, 1:] = False
        return arcs, siblings.masked_fill(~triples, -torch.inf), word.sum(1)

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return (self.arcs.shape[-1] - 1,)

    @override
    def parts_of(self, value: Int[Tensor, "... n"]) -> Bool[Tensor, "... m m"]:
        heads = value if self.mask is None else torch.where(self.mask, value, -1)
        arcs = one_hot(heads + 1, self.arcs.shape[-1] + 1)[..., 1:].bool().mT
        return pad(arcs, (1, 0))

    @override
    def value_of(self, parts: Bool[Tensor, "... m m"]) -> Int[Tensor, "... n"]:
        heads = parts[..., 1:].int().argmax(-2)
        return heads if self.mask is None else torch.where(self.mask, heads, -1)

    @override
    def _require_structures(self, value: Int[Tensor, "... n"]) -> None:
        require_labels("SiblingTree.score", value, self.mask, self.arcs.shape[-1])
        super()._require_structures(value)


def _joined(
    first: list[Tensor], second: list[Tensor], splits: range, total: int, width: int
) -> Float[Tensor, "B num D"]:
    """Sum two items for each i and j = i + width.

    The first has width d and starts at i, for d in `splits`; the second has width total - d and ends at j.
    """
    num = first[0].shape[1] - width
    if not splits:
        return first[0].new_zeros(len(first[0]), num, 0)
    starting = [first[d][:, :num] for d in splits]
    ending = [second[total - d][:, width - total + d :][:, :num] for d in splits]
    return torch.stack(starting, -1) + torch.stack(ending, -1)


def _by_width(siblings: Float[Tensor, "B m m m"]) -> list[tuple[Tensor, Tensor]]:
    """Group the scores of siblings by the width w of the arc, for each w from 1.

    Each entry holds the scores (B, m - w, w) of arcs from i to j = i + w with the sibling i + d, and of
    arcs from j to i with the sibling i + d + 1, for d below w. All scores share one indexing operation,
    because the gradient of each indexing operation has the size of the scores.
    """
    size, device = siblings.shape[1], siblings.device
    grids = []
    for width in range(1, size):
        start = torch.arange(size - width, device=device).unsqueeze(1).expand(-1, width)
        sibling = start + torch.arange(width, device=device)
        grids.append(torch.stack([start, sibling, start + width]))
    i, s, j = torch.cat([grid.flatten(1) for grid in grids], 1)
    counts = [grid[0].numel() for grid in grids]
    outward = siblings[:, i, s, j].split(counts, 1)
    inward = siblings[:, j, s + 1, i].split(counts, 1)
    return [
        (one.unflatten(1, grid.shape[1:]), other.unflatten(1, grid.shape[1:]))
        for one, other, grid in zip(outward, inward, grids, strict=True)
    ]
