"""Two derivatives of a log-partition from explicit passes, for any structure.

    d log Z / d potentials            = marginals                   the outside pass
    d (marginals . g) / d potentials  = Hessian of log Z times g    the tangent pass

The Hessian is symmetric, so the gradient through the marginals is the derivative of the
marginals in the direction g: one more pass of the same dynamic program over stored conditional
probabilities, with no autograd through a recursion. A third derivative is a clear error.

A structure provides four functions on flat batches (`Passes`); `differentiable` turns them into a
log-partition and marginals that autograd and `torch.compile` can use. Under the transforms of
`torch.func` and under forward-mode AD, `_transforms` takes over.
"""

from typing import Any, NoReturn

import torch
from torch import Tensor

from ._passes import (
    Differentiable as Differentiable,
    Passes as Passes,
    Solved as Solved,
    Tensors as Tensors,
)
from ._requests import is_transformed, refuse_third_derivative, sum_like, wants_gradient
from ._transforms import transformable

Function = type[torch.autograd.Function]


def differentiable(name: str, passes: Passes, num_potentials: int) -> Differentiable:
    """Wrap the passes of a structure; error messages contain `name`."""
    tangent_function = _tangent_function(name, passes, num_potentials)
    marginals_function = _marginals_function(passes, num_potentials, tangent_function)
    log_partition_function = _log_partition_function(num_potentials, marginals_function)
    transformed = transformable(name, passes, num_potentials)

    def log_partition(potentials: Tensors, mask: Tensor | None) -> Tensor:
        if is_transformed():
            return transformed.log_partition(potentials, mask)
        if not wants_gradient(potentials):
            return passes.log_partition(potentials, mask)
        with torch.no_grad():
            solved = passes.solve(potentials, mask)
        return log_partition_function.apply(mask, solved.log_partition, *potentials, *solved.saved)

    def marginals(potentials: Tensors, mask: Tensor | None) -> Tensors:
        if is_transformed():
            return transformed.marginals(potentials, mask)
        with torch.no_grad():
            solved = passes.solve(potentials, mask)
        # Without a gradient, call no Function: a compiled Function would shift its arguments by one.
        if not wants_gradient(potentials):
            return passes.marginals(solved.saved, mask)[0]
        return marginals_function.apply(mask, *potentials, *solved.saved)[:num_potentials]

    return Differentiable(log_partition, marginals)


def _apply(function: Function, *inputs: Any) -> Any:
    """Call a Function inside the backward of another Function. A compiled backward is traced once, is
    never differentiated again, and may not contain a Function: there, call its forward directly.
    """
    return (function.forward if torch.compiler.is_compiling() else function.apply)(*inputs)


def _tangent_function(name: str, passes: Passes, num_potentials: int) -> Function:
    class Tangent(torch.autograd.Function):
        """Multiply the Hessian by a direction. The potentials are inputs only to make a derivative of
        this Function an error instead of a silent zero.
        """

        @staticmethod
        def forward(wanted: tuple[bool, ...], mask: Tensor | None, *tensors: Any) -> Any:
            directions, rest = tensors[:num_potentials], tensors[num_potentials:]
            potentials, saved = rest[:num_potentials], rest[num_potentials:]
            along = passes.tangent(saved, mask, directions, wanted)
            return tuple(map(sum_like, potentials, along))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> NoReturn:
            refuse_third_derivative(name)

    return Tangent


def _marginals_function(passes: Passes, num_potentials: int, tangent: Function) -> Function:
    class Marginals(torch.autograd.Function):
        """(mask, potentials, tensors saved by `solve`) -> (marginals, tensors saved by `marginals`)."""

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
        """(mask, log Z, potentials, tensors saved by `solve`) -> log Z; the marginals are its gradient."""

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
                    results[i + 2] = sum_like(potential, weight * found[i])
            return tuple(results)

    return LogPartition
