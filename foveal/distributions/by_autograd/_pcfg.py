"""A PCFG: a distribution over the trees of a given sentence.

    score(tree) = root[A of the whole] + sum over spans (i, j) with label A of spans[i, j, A]
                  + sum over nodes A -> B C of rules[A, B, C]

Time is O(n^3 K^2 + n^2 K^3). Rules are in Chomsky normal form.

Axes: *batch any leading shape, B batch, n words, K symbols.
References: Baker 1979 (the inside algorithm); Eisner 2016 (inside-outside by backpropagation).
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ...inference._compaction import order, take
from ._log_partition import LogPartitionDistribution
from ._reductions import Reduction


@final
@dataclass(frozen=True, eq=False)
class PCFG(LogPartitionDistribution):
    """Binary trees with a symbol on each span; a value is boolean, `(..., n, n, K)`.

    A word outside `mask` is skipped.

    Args:
        spans: `spans[i, j, A]` scores symbol A over words i to j, and `spans[i, i, A]` scores word i as an A: for a
            probabilistic grammar, use the log-probability of the word, and 0 on longer spans.
        rules: `rules[A, B, C]` scores A -> B C.
        root: Score of each symbol of the whole sentence.
        mask: True on real words; by default, all are real.

    Examples:
        >>> from foveal.distributions import PCFG
        >>> spans = torch.zeros(3, 3, 2)
        >>> rules = torch.tensor([[[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
        >>> trees = PCFG(spans, rules, root=torch.zeros(2))
        >>> trees.log_partition().exp() > 2 * 2**5     # two bracketings, five nodes with two symbols
        tensor(True)
        >>> trees.argmax()[0, 2], trees.argmax()[0, 1].any()     # 0 -> 1 0 twice: (0 (1 2))
        (tensor([ True, False]), tensor(False))
    """

    spans: Float[Tensor, "*#batch n n K"]
    rules: Float[Tensor, "*#batch K K K"]
    root: Float[Tensor, "*#batch K"]
    mask: Bool[Tensor, "*#batch n"] | None = None

    axes: ClassVar[dict[str, str]] = {
        "spans": "n n K",
        "rules": "K K K",
        "root": "K",
        "mask": "n",
    }

    @override
    def log_partition_of(
        self,
        logsumexp: Reduction,
        spans: Float[Tensor, "B n n K"],
        rules: Float[Tensor, "B K K K"],
        root: Float[Tensor, "B K"],
        mask: Bool[Tensor, "B n"] | None,
    ) -> Float[Tensor, " B"]:
        """Run the inside algorithm: `inside[w][:, i]` sums the trees over words i to i + w, by symbol."""
        if mask is not None:  # move real words to the end of each row
            padding = ~(mask.unsqueeze(2) & mask.unsqueeze(1)).unsqueeze(-1)
            moved = order(mask)
            spans = take(take(spans.masked_fill(padding, -torch.inf), moved, 1), moved, 2)
        num_words = spans.shape[1]
        inside = [spans.diagonal(0, 1, 2).mT]
        for width in range(1, num_words):
            num = num_words - width
            left = torch.stack([inside[d][:, :num] for d in range(width)], 2)
            right = torch.stack(
                [inside[width - 1 - d][:, d + 1 : d + 1 + num] for d in range(width)], 2
            )
            children = logsumexp(left.unsqueeze(-1) + right.unsqueeze(-2), 2)  # (B, num, K, K)
            nodes = (children.unsqueeze(2) + rules.unsqueeze(1)).flatten(-2)
            inside.append(spans.diagonal(width, 1, 2).mT + logsumexp(nodes, -1))
        whole = torch.stack([sums[:, -1] for sums in inside], 1)
        if mask is None:
            return logsumexp(whole[:, -1] + root, -1)
        length = mask.sum(1)
        found = logsumexp(take(whole, (length - 1).clamp(min=0).unsqueeze(1))[:, 0] + root, -1)
        return torch.where(length > 0, found, 0.0)  # an empty sentence has one tree
