"""Semi-Markov models with the C++ kernels; the recurrences are in `native/src/semi_markov.h`.

Axes: B batch, T positions, D lengths, K labels, S samples.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised

_OPS = torch.ops.foveal_native


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    return _OPS.semi_markov_log_partition.default(*potentials, mask)


def solve(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> NativeSolved:
    """Compute log Z, the segment marginals (B, T, D, K) and the pair marginals (B, T-1, K, K)."""
    log_partition, segments, pairs = _OPS.semi_markov_marginals.default(*potentials, mask)
    return NativeSolved(log_partition, (segments, pairs), ())


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B T"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivatives of both marginals."""
    segments, pairs = saved
    on_segments, on_pairs = _OPS.semi_markov_tangent.default(
        segments, pairs, mask, *directions, wanted[1]
    )
    return on_segments if wanted[0] else None, on_pairs if wanted[1] else None


def best(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
    """Find the best segmentation and its score."""
    return _OPS.semi_markov_best.default(raised(segments), raised(transitions), mask)


def sample(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Int[Tensor, "S B T"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each label and length; return whether any exist."""
    batch, length = segments.shape[:2]
    uniforms = torch.rand(num_samples, batch, 2 * length, dtype=torch.float64, generator=generator)
    return _OPS.semi_markov_sample.default(raised(segments), raised(transitions), mask, uniforms)
