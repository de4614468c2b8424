"""Result types and the choice of passes, shared by projective trees and spanning trees.

Axes: B batch, n words; S samples, k ranks.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from ._derivatives import Differentiable


class BestTrees(NamedTuple):
    """The k best trees, best first; ranks beyond the last tree score -inf."""

    heads: Int[Tensor, "k B n"]
    scores: Float[Tensor, "k B"]


class TreeSamples(NamedTuple):
    """Exact samples of trees; `possible` is False for items without any tree."""

    heads: Int[Tensor, "S B n"]
    possible: Bool[Tensor, " B"]


class TreePasses(NamedTuple):
    """The passes of one kind of tree, for a single root arc and for any number of root arcs."""

    single_root: Differentiable
    multi_root: Differentiable
    native_single_root: Differentiable
    native_multi_root: Differentiable

    def serving(self, served: bool, *, single_root: bool) -> Differentiable:
        """Return the native kernels if they support the tensor, otherwise the PyTorch passes."""
        if served:
            return self.native_single_root if single_root else self.native_multi_root
        return self.single_root if single_root else self.multi_root
