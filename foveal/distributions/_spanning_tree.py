"""A dependency tree over a sentence, with or without crossing arcs.

    score(tree) = sum over words d of arcs[head of d, d]

Time is O(n^3); so is memory when training through the marginals.

Axes: n words, m = n + 1 words and the root.
References: Koo et al. 2007, McDonald & Satta 2007, Smith & Smith 2007 (matrix-tree theorem for
dependency trees).
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ..inference import spanning_best, spanning_log_partition, spanning_marginals
from ..inference.spanning._functions import spanning_sample
from ._dependency_tree import AbstractDependencyTree, TreeInference

_INFERENCE = TreeInference(
    spanning_log_partition, spanning_marginals, spanning_best, spanning_sample
)


@final
@dataclass(frozen=True, eq=False)
class SpanningTree(AbstractDependencyTree):
    """A dependency tree, projective or not.

    A value is the head of each word `(..., n)`, 0 for the root and -1 on padding. Words are numbered
    from 1, as in CoNLL-U, and index 0 is the root, which has no head. A word outside `mask` is neither
    word nor head.

    Args:
        arcs: Scores of all arcs: `arcs[h, d]` scores head h of word d.
        single_root: Whether exactly one word is attached to the root.
        mask: True on real words; by default, all are real.

    Examples:
        >>> arcs = torch.zeros(5, 5)
        >>> arcs[0, 1] = arcs[1, 3] = arcs[3, 2] = arcs[2, 4] = 3.0
        >>> tree = SpanningTree(arcs)
        >>> tree.argmax()                    # the arcs 1 -> 3 and 2 -> 4 cross
        tensor([0, 3, 1, 2])
        >>> tree.marginals()[:, 3].round(decimals=3)    # heads of the third word
        tensor([0.0070, 0.9850, 0.0030, 0.0000, 0.0050])
    """

    @override
    def _inference(self) -> TreeInference:
        return _INFERENCE

    @override
    def _is_allowed(
        self, heads: Int[Tensor, "*shape n"], real: Bool[Tensor, "*shape n"]
    ) -> Bool[Tensor, "*shape"]:
        return torch.ones_like(real[..., 0])

    @override
    def _advice(self) -> str:
        return (
            "A word may not hang from itself, on a cycle or from padding; pass single_root=False "
            "if several words hang from the root."
        )
