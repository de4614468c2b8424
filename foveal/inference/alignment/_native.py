"""Monotone alignments with the C++ kernels (the recurrences are in `native/src/alignment.h`) and with the
Triton kernels (in `gpu/foveal_triton/_alignment_kernels.py`).

Axes: B batch, R = S + 1 rows and C = T + 1 columns of nodes, 3 moves, P paths. A mask is (B, S + T):
source items, then target items.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised, serves
from .._triton import ops_of, serves as serves_on_gpu

# The Triton kernels keep the shorter side of a grid in registers.
_MOST_ROWS = 512


def has_kernels(moves: Float[Tensor, "B R C 3"]) -> bool:
    """Return whether the C++ or the Triton kernels support these tensors."""
    return serves(moves) or (min(moves.shape[1:3]) <= _MOST_ROWS and serves_on_gpu(moves))


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B items"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    (moves,) = potentials
    return ops_of(moves).alignment_log_partition.default(moves, mask)


def solve(potentials: Tensors, mask: Bool[Tensor, "B items"] | None) -> NativeSolved:
    """Compute the log-partition and the move marginals (B, R, C, 3)."""
    (moves,) = potentials
    log_partition, found = ops_of(moves).alignment_marginals.default(moves, mask)
    return NativeSolved(log_partition, (found,), ())


def tangent(
    saved: Tensors,
    mask: Bool[Tensor, "B items"] | None,
    directions: tuple[Tensor | None, ...],
    wanted: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Compute the derivative of the move marginals."""
    del wanted  # the only potential always needs its gradient
    (marginals,) = saved
    (direction,) = directions
    assert direction is not None
    return (ops_of(marginals).alignment_tangent.default(marginals, mask, direction),)


def best(
    moves: Float[Tensor, "B R C 3"], mask: Bool[Tensor, "B items"] | None
) -> tuple[Bool[Tensor, "B R C 3"], Float[Tensor, " B"]]:
    """Find the best path, True on its moves, and its score."""
    return ops_of(moves).alignment_best.default(raised(moves), mask)


def sample(
    moves: Float[Tensor, "B R C 3"],
    mask: Bool[Tensor, "B items"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Bool[Tensor, "P B R C 3"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each move; return whether a path exists, too."""
    batch, num_rows, num_columns, _ = moves.shape
    shape = (num_samples, batch, num_rows + num_columns - 2)
    uniforms = torch.rand(shape, dtype=torch.float64, device=moves.device, generator=generator)
    return ops_of(moves).alignment_sample.default(raised(moves), mask, uniforms)
