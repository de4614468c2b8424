"""A dependency tree over a sentence without crossing arcs.

    score(tree) = sum over words d of arcs[head of d, d]

Syntactic attention reads the expected head of each word. Time is O(n^3); so is memory when training
through the marginals.

Axes: n words, m = n + 1 words and the root.
References: Eisner 1996, 2000 (the algorithm); Kim et al. 2017, section 3.2 (syntactic attention).
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ..inference import projective_best, projective_log_partition, projective_marginals
from ..inference.projective._functions import projective_sample
from ._dependency_tree import AbstractDependencyTree, TreeInference

_INFERENCE = TreeInference(
    projective_log_partition, projective_marginals, projective_best, projective_sample
)


@final
@dataclass(frozen=True, eq=False)
class ProjectiveTree(AbstractDependencyTree):
    """A projective dependency tree.

    A value is the head of each word `(..., n)`, 0 for the root and -1 on padding. Words are numbered
    from 1, as in CoNLL-U. Index 0 is the root, which has no head and is to the left of all words. A word
    outside `mask` is skipped, and its neighbors become adjacent.

    Args:
        arcs: Scores of all arcs: `arcs[h, d]` scores head h of word d.
        single_root: Whether exactly one word is attached to the root.
        mask: True on real words; by default, all are real.

    Examples:
        >>> arcs = torch.zeros(4, 4)
        >>> arcs[0, 2] = arcs[2, 1] = arcs[2, 3] = 2.0
        >>> tree = ProjectiveTree(arcs)
        >>> tree.argmax()                    # both neighbors hang from the second word
        tensor([2, 0, 2])
        >>> tree.marginals()[:, 2]           # heads of the second word
        tensor([0.9555, 0.0222, 0.0000, 0.0222])
    """

    @override
    def _inference(self) -> TreeInference:
        return _INFERENCE

    @override
    def _is_allowed(
        self, heads: Int[Tensor, "*shape n"], real: Bool[Tensor, "*shape n"]
    ) -> Bool[Tensor, "*shape"]:
        words = torch.arange(1, heads.shape[-1] + 1, device=heads.device)
        # An arc from 0 to 0 represents padding: it crosses no other arc.
        near = torch.where(real, torch.minimum(heads, words), 0)
        far = torch.where(real, torch.maximum(heads, words), 0)
        near, far, other_near, other_far = (
            *(end.unsqueeze(-1) for end in (near, far)),
            *(end.unsqueeze(-2) for end in (near, far)),
        )
        crossing = (near < other_near) & (other_near < far) & (far < other_far)
        return ~crossing.flatten(-2).any(-1)

    @override
    def _advice(self) -> str:
        return (
            "A word may not hang from itself, on a cycle or from padding, and arcs may not cross: "
            "use SpanningTree where they do. Pass single_root=False if several words hang from "
            "the root."
        )
