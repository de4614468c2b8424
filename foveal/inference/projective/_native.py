"""Projective trees with the C++ kernels (the recurrences are in `native/src/projective.h`) and with the
Triton kernels (in `gpu/foveal_triton/_projective_kernels.py`).

Axes: B batch, n words, m = n + 1 words and the root, S samples.
"""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised, serves
from .._triton import ops_of, serves as serves_on_gpu

# A program of the Triton kernels holds all splits of a span in registers, and counts splits in 32 bits.
_MOST_NODES = 256


def serves_arcs(arcs: Float[Tensor, "B m m"]) -> bool:
    """Return whether the C++ kernels or the Triton kernels support these potentials."""
    return serves(arcs) or (arcs.shape[-1] <= _MOST_NODES and serves_on_gpu(arcs))


class ProjectiveKernels:
    """The kernels for trees with one root arc, or with any number of root arcs."""

    single_root: ClassVar[bool]

    @classmethod
    def log_partition(
        cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None
    ) -> Float[Tensor, " B"]:
        """Compute only log Z."""
        ops = ops_of(potentials[0])
        return ops.projective_log_partition.default(*potentials, mask, cls.single_root)

    @classmethod
    def solve(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> NativeSolved:
        """Compute log Z and the arc marginals (B, m, m); save the split weights."""
        ops = ops_of(potentials[0])
        log_partition, arcs, kept = ops.projective_marginals.default(
            *potentials, mask, cls.single_root, True
        )
        return NativeSolved(log_partition, (arcs,), (kept,))

    @classmethod
    def marginals(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Tensors:
        """Compute only the arc marginals (B, m, m)."""
        ops = ops_of(potentials[0])
        _, arcs, _ = ops.projective_marginals.default(*potentials, mask, cls.single_root, False)
        return (arcs,)

    @classmethod
    def tangent(
        cls,
        saved: Tensors,
        mask: Bool[Tensor, "B n"] | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """Compute the derivative of the arc marginals."""
        del wanted  # the only potential always needs its gradient
        arcs, kept = saved
        (direction,) = directions
        assert direction is not None
        tangent_op = ops_of(arcs).projective_tangent.default
        return (tangent_op(arcs, kept, mask, direction, cls.single_root),)

    @classmethod
    def best(
        cls, arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B n"] | None
    ) -> tuple[Int[Tensor, "B n"], Float[Tensor, " B"]]:
        """Find the heads of the best tree, and its score."""
        return ops_of(arcs).projective_best.default(raised(arcs), mask, cls.single_root)

    @classmethod
    def sample(
        cls,
        arcs: Float[Tensor, "B m m"],
        mask: Bool[Tensor, "B n"] | None,
        num_samples: int,
        generator: torch.Generator | None,
    ) -> tuple[Int[Tensor, "S B n"], Bool[Tensor, " B"]]:
        """Draw exact samples, with two uniform numbers for each node; return whether any exist."""
        shape = (num_samples, arcs.shape[0], 2 * arcs.shape[1])
        uniforms = torch.rand(shape, dtype=torch.float64, device=arcs.device, generator=generator)
        return ops_of(arcs).projective_sample.default(raised(arcs), mask, uniforms, cls.single_root)


@final
class SingleRootKernels(ProjectiveKernels):
    """Exactly one arc from the root."""

    single_root = True


@final
class MultiRootKernels(ProjectiveKernels):
    """Any number of arcs from the root."""

    single_root = False
