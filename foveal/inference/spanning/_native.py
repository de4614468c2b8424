"""Spanning trees with the C++ kernels; the recurrences are in `native/src/spanning.h`.

Axes: B batch, n words, m = n + 1 words and the root, S samples.
"""

from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .._derivatives import Tensors
from .._native import NativeSolved, raised

_OPS = torch.ops.foveal_native
_SEEDS = 2**63 - 1


class SpanningKernels:
    """The kernels for trees with one root arc, or with any number of root arcs."""

    single_root: ClassVar[bool]

    @classmethod
    def log_partition(
        cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None
    ) -> Float[Tensor, " B"]:
        """Compute only log Z."""
        return _OPS.spanning_log_partition.default(*potentials, mask, cls.single_root)

    @classmethod
    def solve(cls, potentials: Tensors, mask: Bool[Tensor, "B n"] | None) -> NativeSolved:
        """Compute log Z and arc marginals (B, m, m); save the scores and the factors of the Laplacian."""
        (arcs,) = potentials
        log_partition, found, kept, safe = _OPS.spanning_marginals.default(
            arcs, mask, cls.single_root
        )
        return NativeSolved(log_partition, (found,), (arcs, kept, safe))

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
        _, arcs, kept, safe = saved
        (direction,) = directions
        assert direction is not None
        return (_OPS.spanning_tangent.default(arcs, mask, kept, safe, direction, cls.single_root),)

    @classmethod
    def best(
        cls, arcs: Float[Tensor, "B m m"], mask: Bool[Tensor, "B n"] | None
    ) -> tuple[Int[Tensor, "B n"], Float[Tensor, " B"]]:
        """Find the heads of the best tree, and its score."""
        return _OPS.spanning_best.default(raised(arcs), mask, cls.single_root)

    @classmethod
    def sample(
        cls,
        arcs: Float[Tensor, "B m m"],
        mask: Bool[Tensor, "B n"] | None,
        num_samples: int,
        generator: torch.Generator | None,
    ) -> tuple[Int[Tensor, "S B n"], Bool[Tensor, " B"]]:
        """Draw exact samples, with one seed for each; return whether any exist."""
        seeds = torch.randint(_SEEDS, (num_samples, arcs.shape[0]), generator=generator)
        return _OPS.spanning_sample.default(raised(arcs), mask, seeds, cls.single_root)


@final
class SingleRootKernels(SpanningKernels):
    """Exactly one arc from the root."""

    single_root = True


@final
class MultiRootKernels(SpanningKernels):
    """Any number of arcs from the root."""

    single_root = False
