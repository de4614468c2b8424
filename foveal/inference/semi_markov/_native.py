"""Semi-Markov models with the C++ kernels (the recurrences are in `native/src/semi_markov.h`) and with the
Triton kernels (in `gpu/foveal_triton/_segment_kernels.py`).

Axes: B batch, T positions, D lengths, K labels, S samples.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised, serves
from .._triton import ops_of, serves as serves_on_gpu

# A step of the Triton kernels holds all pairs of labels, and all lengths of each label, in registers. Offsets in an
# item are counted in 32 bits.
_MOST_LABELS = _MOST_LENGTHS = 64
_MOST_ENTRIES = 2**31


def serves_segments(
    segments: Float[Tensor, "B T D K"], transitions: Float[Tensor, "#B #T-1 K K"]
) -> bool:
    """Return whether the C++ kernels or the Triton kernels support these tensors."""
    if serves(segments, transitions):
        return True
    _, length, lengths, labels = segments.shape
    small = labels <= _MOST_LABELS and lengths <= _MOST_LENGTHS
    few = length * labels * max(labels, lengths) < _MOST_ENTRIES
    return small and few and serves_on_gpu(segments, transitions)


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    return ops_of(potentials[0]).semi_markov_log_partition.default(*potentials, mask)


def solve(potentials: Tensors, mask: Bool[Tensor, "B T"] | None) -> NativeSolved:
    """Compute log Z, the segment marginals (B, T, D, K) and the pair marginals (B, T-1, K, K)."""
    ops = ops_of(potentials[0])
    log_partition, segments, pairs = ops.semi_markov_marginals.default(*potentials, mask)
    return NativeSolved(log_partition, (segments, pairs), ())


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B T"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivatives of both marginals."""
    segments, pairs = saved
    tangent_op = ops_of(segments).semi_markov_tangent.default
    on_segments, on_pairs = tangent_op(segments, pairs, mask, *directions, wanted[1])
    return on_segments if wanted[0] else None, on_pairs if wanted[1] else None


def best(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
) -> tuple[Int[Tensor, "B T"], Float[Tensor, " B"]]:
    """Find the best segmentation and its score."""
    best_op = ops_of(segments).semi_markov_best.default
    return best_op(raised(segments), raised(transitions), mask)


def sample(
    segments: Float[Tensor, "B T D K"],
    transitions: Float[Tensor, "#B #T-1 K K"],
    mask: Bool[Tensor, "B T"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Int[Tensor, "S B T"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each label and length; return whether any exist."""
    batch, length = segments.shape[:2]
    shape = (num_samples, batch, 2 * length)
    uniforms = torch.rand(shape, dtype=torch.float64, device=segments.device, generator=generator)
    sample_op = ops_of(segments).semi_markov_sample.default
    return sample_op(raised(segments), raised(transitions), mask, uniforms)
