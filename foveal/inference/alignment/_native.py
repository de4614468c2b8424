"""Monotone alignments with the C++ kernels; the recurrences are in `native/src/alignment.h`.

Axes: B batch, R = S + 1 rows and C = T + 1 columns of nodes, 3 moves, P paths. A mask is (B, S + T):
source items, then target items.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised

_OPS = torch.ops.foveal_native


def log_partition(potentials: Tensors, mask: Bool[Tensor, "B items"] | None) -> Float[Tensor, " B"]:
    """Compute only log Z."""
    (moves,) = potentials
    return _OPS.alignment_log_partition.default(moves, mask)


def solve(potentials: Tensors, mask: Bool[Tensor, "B items"] | None) -> NativeSolved:
    """Compute the log-partition and the move marginals (B, R, C, 3)."""
    (moves,) = potentials
    log_partition, found = _OPS.alignment_marginals.default(moves, mask)
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
    return (_OPS.alignment_tangent.default(marginals, mask, direction),)


def best(
    moves: Float[Tensor, "B R C 3"], mask: Bool[Tensor, "B items"] | None
) -> tuple[Bool[Tensor, "B R C 3"], Float[Tensor, " B"]]:
    """Find the best path, True on its moves, and its score."""
    return _OPS.alignment_best.default(raised(moves), mask)


def sample(
    moves: Float[Tensor, "B R C 3"],
    mask: Bool[Tensor, "B items"] | None,
    num_samples: int,
    generator: torch.Generator | None,
) -> tuple[Bool[Tensor, "P B R C 3"], Bool[Tensor, " B"]]:
    """Draw exact samples, with one uniform number for each move; return whether a path exists, too."""
    batch, num_rows, num_columns, _ = moves.shape
    shape = (num_samples, batch, num_rows + num_columns - 2)
    uniforms = torch.rand(shape, dtype=torch.float64, generator=generator)
    return _OPS.alignment_sample.default(raised(moves), mask, uniforms)
