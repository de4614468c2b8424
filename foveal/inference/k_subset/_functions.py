"""Inference in subsets of a given size: log-partition, marginals, best subsets, samples.

    p(z) = exp( sum_i scores[i] z_i - log Z ),    |z| = k

Z is the elementary symmetric polynomial of degree k in exp(scores). The gradient of log Z is the
marginals, and the gradient through the marginals is one tangent pass over stored conditional
probabilities.

Axes: B batch, n items, S samples, R ranks.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...masking import forbid_padding
from .. import _native
from .._arguments import check_items
from .._derivatives import Differentiable, differentiable
from .._precision import result_dtype
from . import _native as kernels, _passes as passes

_PURE = differentiable("k-subset", passes, num_potentials=2)
_NATIVE = _native.differentiable("k-subset", kernels, num_potentials=2)


def _k_subset(scores: Tensor, k: int) -> tuple[Differentiable, Tensor]:
    """Return the native kernels if they support this tensor, otherwise the PyTorch passes; and k as the
    potential that they expect.
    """
    if _native.serves(scores):
        return _NATIVE, kernels.exactly(k, scores)
    return _PURE, _exactly(k, scores)


def _exactly(k: int, scores: Tensor) -> Float[Tensor, "1 {k}+1"]:
    """Return log-potentials of the size of a subset that allow only k."""
    sizes = torch.arange(k + 1, device=scores.device).unsqueeze(0)
    return torch.where(sizes == k, 0.0, -torch.inf).to(scores.dtype)


def k_subset_log_partition(
    scores: Float[Tensor, "B n"], k: int, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, " B"]:
    """Compute log Z, the log-sum of exp(score) over all subsets of size k, in O(n k) time and memory.

    Args:
        scores: Score of each item.
        k: Number of items in a subset.
        mask: True on real items; by default, all are real.

    Returns:
        log Z of each batch item; -inf if fewer than k items are allowed.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: `k` is negative, or the mask is not boolean or is on another device than the scores.

    Examples:
        >>> k_subset_log_partition(torch.zeros(1, 4), 2).exp().round()    # 4 choose 2
        tensor([6.])
    """
    check_items(scores, k, mask)
    functions, size = _k_subset(scores, k)
    return functions.log_partition((scores, size), mask)


def k_subset_marginals(
    scores: Float[Tensor, "B n"], k: int, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B n"]:
    """Compute p(item is chosen); the result is differentiable once more.

    Args:
        scores: Score of each item.
        k: Number of items in a subset.
        mask: True on real items; by default, all are real.

    Returns:
        Probability of each item, 0 on padding; each row sums to k.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: `k` is negative, or the mask is not boolean or is on another device than the scores.

    Examples:
        >>> k_subset_marginals(torch.zeros(1, 4), 3)
        tensor([[0.7500, 0.7500, 0.7500, 0.7500]])
    """
    check_items(scores, k, mask)
    functions, size = _k_subset(scores, k)
    return functions.marginals((scores, size), mask)[0]


class KSubsetBest(NamedTuple):
    """The best subsets, best first; ranks beyond the last subset score -inf."""

    values: Bool[Tensor, "R B n"]
    scores: Float[Tensor, "R B"]


def k_subset_best(
    scores: Float[Tensor, "B n"],
    k: int,
    mask: Bool[Tensor, "B n"] | None = None,
    *,
    num_ranks: int = 1,
) -> KSubsetBest:
    """Find the subsets of size k of highest score in O(n k R log R) time.

    The best subset has the k highest scores.

    Args:
        scores: Score of each item.
        k: Number of items in a subset.
        mask: True on real items; by default, all are real.
        num_ranks: Number R of subsets.

    Returns:
        Subsets and their scores, best first.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: `k` is negative, or the mask is not boolean or is on another device than the scores.

    Examples:
        >>> k_subset_best(torch.tensor([[2.0, 0.0, 1.0]]), 2).values
        tensor([[[ True, False,  True]]])
    """
    check_items(scores, k, mask)
    if num_ranks == 1 and k <= scores.shape[-1]:
        highest = forbid_padding(scores.detach().double(), mask).topk(k)
        values = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, highest.indices, True)
        total = highest.values.sum(-1).to(result_dtype(scores))
        return KSubsetBest(values.unsqueeze(0), total.unsqueeze(0))
    found = passes.best(scores.detach(), _exactly(k, scores), mask, num_ranks)
    return KSubsetBest(found.values, found.scores.to(result_dtype(scores)))


class KSubsetSamples(NamedTuple):
    """Exact samples of subsets; `possible` is False for items without any subset."""

    values: Bool[Tensor, "S B n"]
    possible: Bool[Tensor, " B"]


def k_subset_sample(
    scores: Float[Tensor, "B n"],
    k: int,
    mask: Bool[Tensor, "B n"] | None = None,
    *,
    num_samples: int,
    generator: torch.Generator | None = None,
) -> KSubsetSamples:
    """Draw independent exact samples, from all items down to each, in O(n k) time for each.

    Args:
        scores: Score of each item.
        k: Number of items in a subset.
        mask: True on real items; by default, all are real.
        num_samples: Number of subsets to draw for each batch item.
        generator: Source of random numbers; by default, the generator of the device.

    Returns:
        Sampled subsets, and whether any subset is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: `k` is negative, or the mask is not boolean or is on another device than the scores.

    Examples:
        >>> k_subset_sample(torch.tensor([[0.0, -torch.inf]]), 1, num_samples=1).values
        tensor([[[ True, False]]])
    """
    check_items(scores, k, mask)
    if _native.serves(scores):
        return KSubsetSamples(*kernels.sample(scores.detach(), k, mask, num_samples, generator))
    solved = passes.solve((scores.detach().double(), _exactly(k, scores)), mask)
    root, rows, *weights = solved.saved
    values = passes.draw(root, weights, len(rows), num_samples, generator)
    return KSubsetSamples(values, solved.log_partition > -torch.inf)
