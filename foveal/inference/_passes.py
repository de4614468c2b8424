"""The contract between the dynamic program of a structure and its derivatives.

A structure provides four functions on flat batches (`Passes`). `_derivatives` and `_transforms` turn
them into a differentiable log-partition and differentiable marginals.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

Tensors = tuple[Tensor, ...]


class Solved(NamedTuple):
    """The result of the inside pass."""

    log_partition: Tensor  # (B,)
    saved: Tensors  # inputs of the later passes, mostly conditional probabilities


@runtime_checkable
class Passes(Protocol):
    """The dynamic program of one structure. Potentials and mask have one leading batch axis; a
    potential may have size 1 where it is shared, and its marginals then have the full size.
    """

    def log_partition(self, potentials: Tensors, mask: Tensor | None) -> Tensor:
        """Run the inside pass without saving tensors for a gradient."""
        ...

    def solve(self, potentials: Tensors, mask: Tensor | None) -> Solved:
        """Run the inside pass and save the tensors that the later passes need."""
        ...

    def marginals(self, saved: Tensors, mask: Tensor | None) -> tuple[Tensors, Tensors]:
        """Run the outside pass. Return the marginals, one tensor for each potential, with 0 on entries
        that no structure reads; and the tensors that the tangent pass needs.
        """
        ...

    def tangent(
        self,
        saved: Tensors,
        mask: Tensor | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """Compute the derivative of the marginals along a direction in the potentials (None: no change)
        for the potentials marked in `wanted`. `saved` is the second result of `marginals`.
        """
        ...


class Differentiable(NamedTuple):
    """Functions of (potentials, mask)."""

    log_partition: Callable[[Tensors, Tensor | None], Tensor]
    marginals: Callable[[Tensors, Tensor | None], Tensors]
