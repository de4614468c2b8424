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

from . import _k_subset_passes as passes
from ._derivatives import Differentiable, differentiable
from ._precision import result_dtype

_PURE = differentiable("k-subset", passes, num_potentials=2)


def _k_subset(scores: Tensor) -> Differentiable:
    """The passes for this tensor: the one place where a kernel is chosen."""
    del scores  # the reference passes serve every device
    return _PURE


def _exactly(k: int, scores: Tensor) -> Float[Tensor, "1 {k}+1"]:
    """Log-potentials of the size of a subset that allow k alone."""
    sizes = torch.arange(k + 1, device=scores.device).unsqueeze(0)
    return torch.where(sizes == k, 0.0, -torch.inf).to(scores.dtype)


def k_subset_log_partition(
    scores: Float[Tensor, "B n"], k: int, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, " B"]:
    """log Z, the log-sum of exp(score) over all subsets of size k. O(n k) time and memory.

    >>> k_subset_log_partition(torch.zeros(1, 4), 2).exp().round()    # 4 choose 2
    tensor([6.])
    """
    return _k_subset(scores).log_partition((scores, _exactly(k, scores)), mask)


def k_subset_marginals(
    scores: Float[Tensor, "B n"], k: int, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B n"]:
    """p(item is chosen); 0 on padding, k in total. Differentiable once more.

    >>> k_subset_marginals(torch.zeros(1, 4), 3)
    tensor([[0.7500, 0.7500, 0.7500, 0.7500]])
    """
    return _k_subset(scores).marginals((scores, _exactly(k, scores)), mask)[0]


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
    """The subsets of size k of highest score. O(n k R log R) time.

    >>> k_subset_best(torch.tensor([[2.0, 0.0, 1.0]]), 2).values
    tensor([[[ True, False,  True]]])
    """
    found = passes.best(scores.detach(), _exactly(k, scores), mask, num_ranks)
    return KSubsetBest(found.values, found.scores.to(result_dtype(scores)))


class KSubsetSamples(NamedTuple):
    """Subsets drawn exactly; `possible` is False where there is none to draw."""

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
    """Independent exact samples, from all items down to each. O(n k) time for each.

    >>> k_subset_sample(torch.tensor([[0.0, -torch.inf]]), 1, num_samples=1).values
    tensor([[[ True, False]]])
    """
    solved = passes.solve((scores.detach().double(), _exactly(k, scores)), mask)
    root, rows, *weights = solved.saved
    values = passes.draw(root, weights, len(rows), num_samples, generator)
    return KSubsetSamples(values, solved.log_partition > -torch.inf)
