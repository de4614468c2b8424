"""Subsets of k items by the C++ kernels; the recurrences are in `native/src/k_subset.h`.

The second potential has no numbers: its shape says k.

Axes: B batch, n items, S samples.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised

_OPS = torch.ops.foveal_native


def exactly(k: int, scores: Float[Tensor, "B n"]) -> Float[Tensor, "{k} 0"]:
    """The number of items to choose, as a potential."""
    return scores.new_empty(k, 0)


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    scores, size = potentials
    return _OPS.k_subset_log_partition.default(scores, mask, size.shape[0])


def solve(potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> NativeSolved:
    """Log-partition, p(item is chosen) (B, n), and the weights of the recursion."""
    scores, size = potentials
    log_partition, found, kept = _OPS.k_subset_marginals.default(scores, mask, size.shape[0])
    return NativeSolved(log_partition, (found, torch.empty_like(size)), (kept,))


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B n"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """The derivative of the marginals of the items."""
    del wanted  # callers only ask for the scores
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
    """Exact samples, one uniform number for each item; and where there is one to draw."""
    uniforms = torch.rand(num_samples, *scores.shape, dtype=torch.float64, generator=generator)
    return _OPS.k_subset_sample.default(raised(scores), mask, k, uniforms)
