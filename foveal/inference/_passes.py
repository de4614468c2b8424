"""The contract between the dynamic program of a structure and its derivatives.

A structure gives four functions on flat batches (`Passes`). `_derivatives` and `_transforms` turn
them into a log-partition and marginals that can be differentiated.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

Tensors = tuple[Tensor, ...]


class Solved(NamedTuple):
    """The result of the inside pass."""

    log_partition: Tensor  # (B,)
    saved: Tensors  # whatever the later passes need, conditional probabilities above all


@runtime_checkable
class Passes(Protocol):
    """The dynamic program of one structure. Potentials and mask have one leading batch axis; a
    potential may have size 1 where it is shared, and its marginals then have the full size.
    """

    def log_partition(self, potentials: Tensors, mask: Tensor | None) -> Tensor:
        """The inside pass, when nothing is to be differentiated."""
        ...

    def solve(self, potentials: Tensors, mask: Tensor | None) -> Solved:
        """The inside pass, keeping what the later passes need."""
        ...

    def marginals(self, saved: Tensors, mask: Tensor | None) -> tuple[Tensors, Tensors]:
        """The outside pass: marginals, one for each potential, 0 on what no structure reads; and
        what the tangent pass needs.
        """
        ...

    def tangent(
        self,
        saved: Tensors,
        mask: Tensor | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """The derivative of the marginals along a direction in the potentials (None: no change),
        for the potentials that are wanted. `saved` is what `marginals` gave.
        """
        ...


class Differentiable(NamedTuple):
    """Functions of (potentials, mask)."""

    log_partition: Callable[[Tensors, Tensor | None], Tensor]
    marginals: Callable[[Tensors, Tensor | None], Tensors]
