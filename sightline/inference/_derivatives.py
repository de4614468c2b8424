"""Two derivatives of a log-partition from explicit passes, for any structure.

    d log Z / d potentials            = marginals                   the outside pass
    d (marginals . g) / d potentials  = Hessian of log Z times g    the tangent pass

The Hessian is symmetric, so the gradient through the marginals is the derivative of the
marginals in the direction g: one more pass of the same dynamic program over stored conditional
probabilities, with no autograd through a recursion. A third derivative is a clear error.

A structure gives four functions on flat batches (`Passes`); `differentiable` turns them into a
log-partition and marginals that autograd, `torch.func` and `torch.compile` can use.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import torch
from torch import Tensor

from ..errors import DerivativeError

Tensors = tuple[Tensor, ...]
Function = type[torch.autograd.Function]


class Solved(NamedTuple):
    """What the inside pass leaves behind."""

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


def differentiable(name: str, passes: Passes, num_potentials: int) -> Differentiable:
    """Wrap the passes of a structure; `name` is how errors call it."""
    tangent_function = _tangent_function(name, passes, num_potentials)
    marginals_function = _marginals_function(passes, num_potentials, tangent_function)
    log_partition_function = _log_partition_function(num_potentials, marginals_function)

    def log_partition(potentials: Tensors, mask: Tensor | None) -> Tensor:
        if not torch.is_grad_enabled() or not any(part.requires_grad for part in potentials):
            return passes.log_partition(potentials, mask)
        with torch.no_grad():
            solved = passes.solve(potentials, mask)
        return log_partition_function.apply(mask, solved.log_partition, *potentials, *solved.saved)

    def marginals(potentials: Tensors, mask: Tensor | None) -> Tensors:
        with torch.no_grad():
            solved = passes.solve(potentials, mask)
        return marginals_function.apply(mask, *potentials, *solved.saved)[:num_potentials]

    return Differentiable(log_partition, marginals)


def _grad_like(potential: Tensor, grad: Tensor | None) -> Tensor | None:
    """Sum a full-size gradient over the axes on which the potential is shared."""
    return None if grad is None else grad.sum_to_size(potential.shape).to(potential.dtype)


def _apply(function: Function, *inputs: Any) -> Any:
    """Use a Function inside the backward of another. A compiled backward is traced once, never
    differentiated again, and may not hold a Function: there, its forward is called directly.
    """
    return (function.forward if torch.compiler.is_compiling() else function.apply)(*inputs)


def _tangent_function(name: str, passes: Passes, num_potentials: int) -> Function:
    class Tangent(torch.autograd.Function):
        """The Hessian times a direction. The potentials are inputs only so that asking for a
        derivative of this is an error and not a silent zero.
        """

        generate_vmap_rule = True

        @staticmethod
        def forward(wanted: tuple[bool, ...], mask: Tensor | None, *tensors: Any) -> Any:
            directions, rest = tensors[:num_potentials], tensors[num_potentials:]
            potentials, saved = rest[:num_potentials], rest[num_potentials:]
            along = passes.tangent(saved, mask, directions, wanted)
            return tuple(map(_grad_like, potentials, along))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> NoReturn:
            raise DerivativeError(
                f"{name}: two derivatives of the log-partition (one of the marginals) can be "
                f"taken, got a request for one more. Take the gradient of the marginals without "
                f"create_graph=True, or differentiate a detached copy."
            )

    return Tangent


def _marginals_function(passes: Passes, num_potentials: int, tangent: Function) -> Function:
    class Marginals(torch.autograd.Function):
        """(mask, potentials, what `solve` saved) -> (marginals, what `marginals` saved)."""

        generate_vmap_rule = True

        @staticmethod
        def forward(mask: Tensor | None, *tensors: Tensor) -> Any:
            found, saved = passes.marginals(tensors[num_potentials:], mask)
            return *found, *saved

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            mask, *tensors = inputs
            saved = output[num_potentials:]
            ctx.num_inputs = len(inputs)
            ctx.save_for_backward(mask, *tensors[:num_potentials], *saved)
            ctx.mark_non_differentiable(*saved)
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            directions = grads[:num_potentials]
            unused = (None,) * (ctx.num_inputs - num_potentials - 1)
            if all(direction is None for direction in directions):
                return None, *(None,) * num_potentials, *unused
            mask, *tensors = ctx.saved_tensors
            wanted = tuple(ctx.needs_input_grad[1 : num_potentials + 1])
            return None, *_apply(tangent, wanted, mask, *directions, *tensors), *unused

    return Marginals


def _log_partition_function(num_potentials: int, marginals: Function) -> Function:
    class LogPartition(torch.autograd.Function):
        """(mask, log Z, potentials, what `solve` saved) -> log Z, with the marginals as gradient."""

        generate_vmap_rule = True

        @staticmethod
        def forward(mask: Tensor | None, log_partition: Tensor, *tensors: Tensor) -> Tensor:
            return log_partition.clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            mask, _, *tensors = inputs
            ctx.save_for_backward(mask, *tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            mask, *tensors = ctx.saved_tensors
            found = _apply(marginals, mask, *tensors)
            results: list[Tensor | None] = [None] * (len(tensors) + 2)
            for i, potential in enumerate(tensors[:num_potentials]):
                if ctx.needs_input_grad[i + 2]:
                    weight = grads[0].reshape(-1, *(1,) * (potential.ndim - 1))
                    results[i + 2] = _grad_like(potential, weight * found[i])
            return tuple(results)

    return LogPartition
