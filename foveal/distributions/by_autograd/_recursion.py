"""A recursion for log Z and its input tensors: its value and its gradient under any reduction.

Axes: B batch, *event axes of a potential.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad

from ...errors import ShapeError
from .._checks import reads_values
from ._reductions import Reduction, logsumexp

Tensors = dict[str, Tensor]


class Outcome(NamedTuple):
    """The value of a recursion, and how often it uses each entry of each potential (its gradient)."""

    total: Float[Tensor, " B"]
    used: Tensors  # (B, *event)


@dataclass(frozen=True, eq=False)
class Recursion:
    """`function(reduction, **potentials, **others)`; tensors have one batch axis."""

    owner: str  # for error messages
    function: Callable[..., Tensor]
    potentials: Tensors  # float64
    others: dict[str, Tensor | None]  # masks and indices

    def solve(self, reduction: Reduction) -> Float[Tensor, " B"]:
        """Compute the value."""
        found = self.function(reduction, **self.potentials, **self.others)
        size = len(next(iter(self.potentials.values())))
        if found.shape != (size,):
            raise ShapeError(
                f"{self.owner}.log_partition_of: expected a result of shape ({size},), one number for "
                f"each item of the batch, got {tuple(found.shape)}. Sum over all other axes."
            )
        return found

    def without_unread(self) -> "Recursion":
        """Replace NaN and +inf that no structure uses, such as padding, with 0.

        Even with weight 0, they would make sums and gradients NaN.
        """
        if not reads_values() or all(
            bool((part.detach() < torch.inf).all()) for part in self.potentials.values()
        ):
            return self
        zeros = {name: torch.zeros_like(part) for name, part in self.potentials.items()}
        used = replace(self, potentials=zeros).outcome(logsumexp).used
        potentials = {
            name: torch.where(used[name] > 0, part, 0.0) for name, part in self.potentials.items()
        }
        return replace(self, potentials=potentials)

    def outcome(self, reduction: Reduction, *, records: bool = False) -> Outcome:
        """Compute the value and its gradient; `records` allows a second derivative."""
        if reads_values() and forward_ad._current_level < 0:
            return self._differentiated(reduction, records=records)

        # `torch.autograd.grad` ignores transforms and forward-mode AD; `torch.func.grad` composes.
        def total(potentials: Tensors) -> tuple[Tensor, Tensor]:
            found = replace(self, potentials=potentials).solve(reduction)
            return found.sum(), found

        used, found = torch.func.grad(total, has_aux=True)(self.potentials)
        return Outcome(found, used)

    def _differentiated(self, reduction: Reduction, *, records: bool) -> Outcome:
        # Autograd cannot save tensors of an enclosing inference mode, hence the clones.
        with torch.inference_mode(False), torch.enable_grad():
            leaves = {
                name: (part if records else part.detach()).clone()
                for name, part in self.potentials.items()
            }
            for leaf in leaves.values():
                if not leaf.requires_grad:
                    leaf.requires_grad_()
            others = {
                name: None if part is None else part.clone() for name, part in self.others.items()
            }
            total = replace(self, potentials=leaves, others=others).solve(reduction)
            if not total.requires_grad:  # it uses no potential, so there is no choice
                return Outcome(total, {name: torch.zeros_like(leaves[name]) for name in leaves})
            gradients = torch.autograd.grad(
                total.sum(), list(leaves.values()), create_graph=records, materialize_grads=True
            )
        return Outcome(total.detach(), dict(zip(leaves, gradients, strict=True)))
