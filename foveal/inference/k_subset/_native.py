"""Subsets of k items with the C++ kernels; the recurrences are in `native/src/k_subset.h`.

The second potential is an empty tensor whose first size is k.

Axes: B batch, n items, S samples.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised

_OPS = torch.ops.foveal_native


def exactly(k: int, scores: Float[Tensor, "B n"]) -> Float[Tensor, "{k} 0"]:
    """Encode the number of items to choose as a potential."""
    return scores.new_empty(k, 0)


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    scores, size = potentials
    return _OPS.k_subset_log_partition.default(scores, mask, size.shape[0])


def solve(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> NativeSolved:
    """Compute log Z and p(item is chosen) (B, n); save the weights of the recursion."""
    scores, size = potentials
    log_partition, found, kept = _OPS.k_subset_marginals.default(scores, mask, size.shape[0])
    return NativeSolved(log_partition, (found, torch.empty_like(size)), (kept,))


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B n"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivative of the item marginals."""
    del wanted  # callers only need the gradient of the scores
    found, _, kept = saved
    direction = directions[0]
    assert direction is not None
    return _OPS.k_subset_tangent.default(found, kept, mask, direction), None


def sample(
    scores: Float[Tensor, "B n"],
    k: int,
    mask: Bool[Tensor, "B n"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Bool[Tensor, "S B n"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each item; return whether any exist."""
    uniforms = torch.rand(num_samples, *scores.shape, dtype=torch.float64, generator=generator)
    return _OPS.k_subset_sample.default(raised(scores), mask, k, uniforms)
