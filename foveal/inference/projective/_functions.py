"""Inference in projective dependency trees: log-partition, marginals, best trees, samples.

    p(tree) = exp( sum over words d of arcs[head of d, d] - log Z )

The sum is over trees without crossing arcs, with the root to the left of all words. The
gradient of log Z is the marginals, and the gradient through the marginals is one tangent pass
over stored split probabilities.

Axes: B batch, n words, m = n + 1 words and the root, which has index 0; S samples, k ranks.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .. import _native
from .._arguments import check_arcs
from .._derivatives import differentiable
from .._precision import result_dtype
from .._trees import BestTrees, TreePasses, TreeSamples
from . import _derivations as derivations
from ._native import MultiRootKernels, SingleRootKernels, serves_arcs
from ._passes import MultiRoot, SingleRoot, prepare

_PASSES = TreePasses(
    differentiable("projective tree", SingleRoot, 1),
    differentiable("projective tree", MultiRoot, 1),
    _native.differentiable(
        "projective tree", SingleRootKernels, 1, marginals_alone=SingleRootKernels.marginals
    ),
    _native.differentiable(
        "projective tree", MultiRootKernels, 1, marginals_alone=MultiRootKernels.marginals
    ),
)


def projective_log_partition(
    arcs: Float[Tensor, "B m m"],
    mask: Bool[Tensor, "B m-1"] | None = None,
    *,
    single_root: bool = True,
) -> Float[Tensor, " B"]:
    """Compute log Z, the log-sum of exp(score) over all trees, in O(n^3) time.

    Args:
        arcs: Scores of all arcs, head by word, with the root at index 0; the diagonal and column 0 are ignored.
        mask: True on real words; by default, all are real.
        single_root: Whether exactly one word is the child of the root.

    Returns:
        log Z of each batch item; -inf if no tree is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> projective_log_partition(torch.zeros(1, 4, 4)).exp().round()    # trees of 3 words
        tensor([7.])
    """
    check_arcs(arcs, mask)
    return _PASSES.serving(serves_arcs(arcs), single_root=single_root).log_partition((arcs,), mask)


def projective_marginals(
    arcs: Float[Tensor, "B m m"],
    mask: Bool[Tensor, "B m-1"] | None = None,
    *,
    single_root: bool = True,
) -> Float[Tensor, "B m m"]:
    """Compute p(arc from h to d).

    It takes O(n^3) time and memory, and is differentiable once more.

    Args:
        arcs: Scores of all arcs, head by word, with the root at index 0; the diagonal and column 0 are ignored.
        mask: True on real words; by default, all are real.
        single_root: Whether exactly one word is the child of the root.

    Returns:
        Probability of each arc, head by word; 0 on the diagonal, on arcs to the root and on padding.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> projective_marginals(torch.zeros(1, 3, 3))    # either word may be the root's
        tensor([[[0.0000, 0.5000, 0.5000],
                 [0.0000, 0.0000, 0.5000],
                 [0.0000, 0.5000, 0.0000]]])
    """
    check_arcs(arcs, mask)
    return _PASSES.serving(serves_arcs(arcs), single_root=single_root).marginals((arcs,), mask)[0]


def projective_best(
    arcs: Float[Tensor, "B m m"],
    mask: Bool[Tensor, "B m-1"] | None = None,
    *,
    single_root: bool = True,
    k: int = 1,
) -> BestTrees:
    """Find the k trees of highest score (Eisner's algorithm for k = 1) in O(n^3 k log k) time.

    Args:
        arcs: Scores of all arcs, head by word, with the root at index 0; the diagonal and column 0 are ignored.
        mask: True on real words; by default, all are real.
        single_root: Whether exactly one word is the child of the root.
        k: Number of trees.

    Returns:
        Heads of the words of each tree, 0 for the root, and the scores of the trees, best first.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> arcs = torch.tensor([[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
        >>> projective_best(arcs, k=2).heads
        tensor([[[0, 1]],
        <BLANKLINE>
                [[2, 0]]])
    """
    check_arcs(arcs, mask)
    if k == 1 and serves_arcs(arcs):
        kernels = SingleRootKernels if single_root else MultiRootKernels
        heads, scores = kernels.best(arcs.detach(), mask)
        return BestTrees(heads.unsqueeze(0), scores.unsqueeze(0))
    heads, scores = derivations.best(*prepare(arcs.detach(), mask, single_root=single_root), k)
    return BestTrees(heads, scores.to(result_dtype(arcs)))


def projective_sample(
    arcs: Float[Tensor, "B m m"],
    mask: Bool[Tensor, "B m-1"] | None = None,
    *,
    single_root: bool = True,
    num_samples: int,
    generator: torch.Generator | None = None,
) -> TreeSamples:
    """Draw independent exact samples, from the widest span down: O(n^3) time, then O(n^2) for each sample.

    Args:
        arcs: Scores of all arcs, head by word, with the root at index 0; the diagonal and column 0 are ignored.
        mask: True on real words; by default, all are real.
        single_root: Whether exactly one word is the child of the root.
        num_samples: Number of trees to draw for each batch item.
        generator: Source of random numbers; by default, the generator of the device.

    Returns:
        Heads of the words of each tree, 0 for the root, and whether any tree is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: The mask is not boolean, or is on another device than the scores.

    Examples:
        >>> never = torch.tensor([[[0.0, 0.0, -torch.inf], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
        >>> projective_sample(never, num_samples=1).heads
        tensor([[[0, 1]]])
    """
    check_arcs(arcs, mask)
    if serves_arcs(arcs):
        kernels = SingleRootKernels if single_root else MultiRootKernels
        return TreeSamples(*kernels.sample(arcs.detach(), mask, num_samples, generator))
    ready = prepare(arcs.detach(), mask, single_root=single_root)
    return TreeSamples(*derivations.draw(*ready, num_samples, generator))
