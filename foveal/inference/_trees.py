"""What inference in projective trees and in spanning trees have in common: results, and which passes serve.

Axes: B batch, n words; S samples, k ranks.
"""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from . import _native
from ._derivatives import Differentiable


class BestTrees(NamedTuple):
    """The k best trees, best first; ranks beyond the last tree score -inf."""

    heads: Int[Tensor, "k B n"]
    scores: Float[Tensor, "k B"]


class TreeSamples(NamedTuple):
    """Trees drawn exactly; `possible` is False where there is none to draw."""

    heads: Int[Tensor, "S B n"]
    possible: Bool[Tensor, " B"]


class TreePasses(NamedTuple):
    """The passes of one kind of tree, by the number of arcs that the root may have."""

    single_root: Differentiable
    multi_root: Differentiable
    native_single_root: Differentiable
    native_multi_root: Differentiable

    def serving(self, arcs: Tensor, *, single_root: bool) -> Differentiable:
        """The passes for this tensor: native kernels where they serve, the reference elsewhere."""
        if _native.serves(arcs):
            return self.native_single_root if single_root else self.native_multi_root
        return self.single_root if single_root else self.multi_root
