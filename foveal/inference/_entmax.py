"""A maximum smoothed by a Tsallis entropy, whose gradient is a sparse distribution.

    max_a(x) = max over p in the simplex of  <p, x> - Omega(p),     Omega(p) = ( sum_i p_i^a - 1 ) / ( a (a - 1) )
    p        = its gradient, the a-entmax of x:   p_i = [ (a - 1) x_i - tau ]_+ ^ (1 / (a - 1))

With a = 2, p is sparsemax, the Euclidean projection of x onto the simplex; a -> 1 is softmax and
log-sum-exp. Omega is 0 where p is certain. The smoothed maximum of a single choice is therefore its
score, as under log-sum-exp. Other authors leave out the constant: for a = 2, Mensch & Blondel's
`<p, x> - |p|^2 / 2` is less than this by 1/2.

    dp = s * (dx - <s, dx> / sum(s)),     s_i = p_i^(2 - a) where p_i > 0, else 0

Axes: *batch any leading shape, B batch, n choices.
References: Martins & Astudillo 2016 (sparsemax); Peters et al. 2019 (entmax, exact for a = 1.5);
Blondel et al. 2020 (Fenchel-Young losses).
"""

from functools import lru_cache
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..masking import forbid_padding
from ._derivatives import Differentiable, Solved, Tensors, differentiable
from ._precision import result_dtype

# The threshold lies in an interval of length 1. After 60 halvings, the interval is shorter than
# the spacing of float64 numbers.
_NUM_HALVINGS = 60


def entmax_maximum(
    scores: Float[Tensor, "B n"], mask: Bool[Tensor, "B n"] | None = None, *, alpha: float
) -> Float[Tensor, " B"]:
    """Compute max_alpha of each row; the result is differentiable twice.

    Args:
        scores: Scores of the choices in each row.
        mask: True on allowed choices; by default, all are allowed.
        alpha: Order of the entropy, greater than 1: 2 for sparsemax, 1.5 for 1.5-entmax.

    Returns:
        Smoothed maximum of each row; -inf if no choice is allowed.

    Examples:
        >>> entmax_maximum(torch.tensor([[1.0, 0.6, 0.1]]), alpha=2.0) - 0.5     # Mensch & Blondel's
        tensor([0.5900])
    """
    return _entmax(alpha).log_partition((scores,), mask)


def entmax_marginals(
    scores: Float[Tensor, "B n"], mask: Bool[Tensor, "B n"] | None = None, *, alpha: float
) -> Float[Tensor, "B n"]:
    """Compute the alpha-entmax of each row.

    It takes O(n log n) time for alpha 2 and 1.5, and 60 passes over a row for any other alpha.

    Args:
        scores: Scores of the choices in each row.
        mask: True on allowed choices; by default, all are allowed.
        alpha: Order of the entropy, greater than 1: 2 for sparsemax, 1.5 for 1.5-entmax.

    Returns:
        Probability of each choice, many of them 0; each row sums to 1, or to 0 if no choice is allowed.

    Examples:
        >>> entmax_marginals(torch.tensor([[1.0, 0.6, 0.1]]), alpha=2.0)
        tensor([[0.7000, 0.3000, 0.0000]])
    """
    return _entmax(alpha).marginals((scores,), mask)[0]


class _Passes:
    """The passes of one choice. The smoothed maximum replaces the log-partition of softmax. This is a
    class with an alpha, not an instance, because torch.compile can trace a class.
    """

    alpha: ClassVar[float]

    @classmethod
    def log_partition(cls, potentials: Tensors, mask: Tensor | None) -> Tensor:
        return cls.solve(potentials, mask).log_partition

    @classmethod
    def solve(cls, potentials: Tensors, mask: Tensor | None) -> Solved:
        dtype = result_dtype(potentials[0])
        found = smooth_max(forbid_padding(potentials[0].double(), mask), cls.alpha)
        return Solved(found.maximum.to(dtype), (found.argmax.to(dtype),))

    @classmethod
    def marginals(cls, saved: Tensors, mask: Tensor | None) -> tuple[Tensors, Tensors]:
        del mask  # padding has probability 0 already
        return (saved[0].clone(),), (saved[0].view_as(saved[0]),)

    @classmethod
    def tangent(
        cls,
        saved: Tensors,
        mask: Tensor | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        del wanted  # there is one potential
        (direction,) = directions
        assert direction is not None
        if mask is not None:
            direction = torch.where(mask, direction, 0.0)
        return (smooth_max_tangent(saved[0], direction, cls.alpha),)


class SmoothMax(NamedTuple):
    """The smoothed maximum over the last axis, and the distribution that attains it."""

    maximum: Float[Tensor, "*batch"]
    argmax: Float[Tensor, "*batch n"]  # its gradient; all 0 where every score is -inf


def smooth_max(scores: Float[Tensor, "*batch n"], alpha: float) -> SmoothMax:
    """Compute max_alpha and alpha-entmax in float64, without autograd."""
    top = scores.max(-1, keepdim=True).values
    impossible = top == -torch.inf
    below = scores - torch.where(impossible, 0.0, top)
    # In these units the threshold is at least -1, so all lower scores have probability 0. Clamping
    # them at -2 keeps squares of large differences out of the sums.
    scaled = (below * (alpha - 1)).clamp(min=-2.0)
    if alpha == 2:
        threshold = _threshold_2(scaled)
    elif alpha == 1.5:
        threshold = _threshold_15(scaled)
    else:
        threshold = _threshold_by_halving(scaled, alpha)
    probabilities = (scaled - threshold).clamp(min=0.0) ** (1 / (alpha - 1))
    probabilities = probabilities / probabilities.sum(-1, keepdim=True)

    expected = (probabilities * torch.where(probabilities > 0, below, 0.0)).sum(-1, keepdim=True)
    omega = ((probabilities**alpha).sum(-1, keepdim=True) - 1) / (alpha * (alpha - 1))
    maximum = torch.where(impossible, -torch.inf, top + expected - omega)
    return SmoothMax(maximum.squeeze(-1), torch.where(impossible, 0.0, probabilities))


def smooth_max_tangent(
    argmax: Float[Tensor, "*batch n"], direction: Float[Tensor, "*batch n"], alpha: float
) -> Float[Tensor, "*batch n"]:
    """Compute the derivative of alpha-entmax along a direction in the scores; 0 outside the support."""
    inside = argmax != 0  # NaN counts as inside
    weights = torch.where(inside, torch.where(inside, argmax, 1.0) ** (2 - alpha), 0.0)
    total = weights.sum(-1, keepdim=True)
    mean = (weights * direction).sum(-1, keepdim=True) / torch.where(total > 0, total, 1.0)
    return weights * (direction - mean)


def _threshold_2(scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch 1"]:
    """Find tau with sum_i [x_i - tau]_+ = 1, from sorted partial sums."""
    ranked = scores.sort(-1, descending=True).values
    total = ranked.cumsum(-1)
    size = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
    # Choose at least one, also where scores are NaN or inf: then the result is NaN.
    chosen = (1 + size * ranked > total).sum(-1, keepdim=True).clamp(min=1)
    return (total.gather(-1, chosen - 1) - 1) / chosen


def _threshold_15(scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch 1"]:
    """Find tau with sum_i [x_i - tau]_+^2 = 1: a root of a quadratic for each size of the support."""
    ranked = scores.sort(-1, descending=True).values
    size = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
    mean = ranked.cumsum(-1) / size
    variance = (ranked**2).cumsum(-1) / size - mean**2
    # If the radicand is negative, this support size is too large.
    threshold = mean - (1 / size - variance).clamp(min=0.0).sqrt()
    chosen = (threshold <= ranked).sum(-1, keepdim=True).clamp(min=1)  # as for sparsemax
    return threshold.gather(-1, chosen - 1)


def _threshold_by_halving(
    scores: Float[Tensor, "*batch n"], alpha: float
) -> Float[Tensor, "*batch 1"]:
    """Find tau with sum_i [x_i - tau]_+^(1 / (alpha - 1)) = 1. The largest score is 0 and the largest
    probability is between 1/n and 1, so tau is between -1 and -(1/n)^(alpha - 1).
    """
    low = torch.full_like(scores[..., :1], -1.0)
    high = torch.full_like(low, -(scores.shape[-1] ** (1.0 - alpha)))
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        total = ((scores - middle).clamp(min=0.0) ** (1 / (alpha - 1))).sum(-1, keepdim=True)
        low, high = torch.where(total >= 1, middle, low), torch.where(total >= 1, high, middle)
    return low


@lru_cache
def _make(alpha: float) -> Differentiable:
    passes = type("_PassesOfOrder", (_Passes,), {"alpha": alpha})
    return differentiable(f"{alpha}-entmax", passes, num_potentials=1)


# Created at import: torch.compile cannot create new ones while it traces.
_MADE = {alpha: _make(alpha) for alpha in (1.5, 2.0)}


def _entmax(alpha: float) -> Differentiable:
    return _MADE[alpha] if alpha in _MADE else _make(alpha)
