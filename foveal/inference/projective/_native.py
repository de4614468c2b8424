"""Projective trees with the C++ kernels; the recurrences are in `native/src/projective.h`.

Axes: B batch, n words, m = n + 1 words and the root, S samples.
"""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised

_OPS = torch.ops.foveal_native


class ProjectiveKernels:
    """The kernels for trees with one root arc, or with any number of root arcs."""

    single_root: ClassVar[bool]

    @classmethod
    def log_partition(
        cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None
    ) -> Float[Tensor, " B"]:
        """Compute only log Z."""
        return _OPS.projective_log_partition.default(*potentials, mask, cls.single_root)

    @classmethod
    def solve(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> NativeSolved:
        """Compute log Z and the arc marginals (B, m, m); save the split weights."""
        log_partition, arcs, kept = _OPS.projective_marginals.default(
            *potentials, mask, cls.single_root, True
        )
        return NativeSolved(log_partition, (arcs,), (kept,))

    @classmethod
    def marginals(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> Tensors:
        """Compute only the arc marginals (B, m, m)."""
        _, arcs, _ = _OPS.projective_marginals.default(*potentials, mask, cls.single_root, False)
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
        return (_OPS.projective_tangent.default(arcs, kept, mask, direction, cls.single_root),)

    @classmethod
    def best(
        cls, arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B n"] | None
    ) -> tuple[Int[Tensor, "B n"], Float[Tensor, " B"]]:
        """Find the heads of the best tree, and its score."""
        return _OPS.projective_best.default(raised(arcs), mask, cls.single_root)

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
        uniforms = torch.rand(shape, dtype=torch.float64, generator=generator)
        return _OPS.projective_sample.default(raised(arcs), mask, uniforms, cls.single_root)


@final
class SingleRootKernels(ProjectiveKernels):
    """Exactly one arc from the root."""

    single_root = True


@final
class MultiRootKernels(ProjectiveKernels):
    """Any number of arcs from the root."""

    single_root = False
