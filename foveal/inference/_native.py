"""The C++ kernels of `foveal-native`, where they are installed and fit.

They serve float32 and float64 on the processor. Everything else, and the transforms of torch.func,
takes the passes in PyTorch operations, which are the reference. The environment variable
FOVEAL_KERNELS chooses for a process: `pure` for the reference alone, `baseline` or `avx2` for
narrower kernels than the processor has.

`differentiable` does for kernels what `_derivatives` does for passes, in the form that costs least
to call: small kernels take less time than torch takes to record them.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import torch
from torch import Tensor

from ..errors import MissingKernelsWarning
from ._derivatives import Differentiable, Function, Tensors
from ._requests import is_transformed, records_gradient, refuse_third_derivative, wants_gradient


def _is_installed() -> bool:
    """Import the kernels, which registers them; the package is complete without, and slower."""
    try:
        import_module("foveal_native")
    except ImportError:
        return False
    return True


_WANTED = os.environ.get("FOVEAL_KERNELS") != "pure"
_IN_USE = _WANTED and _is_installed()
_RAISED = (torch.float16, torch.bfloat16)
_SERVED = (torch.float32, torch.float64, *_RAISED)


class NativeSolved(NamedTuple):
    """What one call of the kernels gives."""

    log_partition: Tensor  # (B,)
    marginals: Tensors  # one for each potential
    saved: Tensors  # what the tangent pass needs besides the marginals


@runtime_checkable
class Kernels(Protocol):
    """The kernels of one structure; potentials and mask as in `_derivatives.Passes`."""

    def log_partition(self, potentials: Tensors, mask: Tensor | None) -> Tensor:
        """The inside pass alone."""
        ...

    def solve(self, potentials: Tensors, mask: Tensor | None) -> NativeSolved:
        """The inside and the outside pass."""
        ...

    def tangent(
        self,
        saved: Tensors,
        mask: Tensor | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """The derivative of the marginals; `saved` is the marginals and what `solve` saved."""
        ...


def serves(*potentials: Tensor) -> bool:
    """Whether the kernels take these potentials."""
    if not _IN_USE:
        if _WANTED and potentials[0].is_cpu and not torch.compiler.is_compiling():
            _tell_of_missing_kernels()
        return False
    dtype = potentials[0].dtype
    for part in potentials:
        if part.dtype != dtype or not part.is_cpu:
            return False
    return dtype in _SERVED and not is_transformed()


@cache
def _tell_of_missing_kernels() -> None:
    """Warn, once in a process."""
    warnings.warn(
        "foveal-native is not installed, so structures on the CPU run in PyTorch operations, "
        "several times slower. Install the kernels with `pip install --no-build-isolation ./native` "
        "from the source folder, or set FOVEAL_KERNELS=pure to go without them.",
        MissingKernelsWarning,
        stacklevel=2,
    )


def raised(potential: Tensor) -> Tensor:
    """Half precision as float32."""
    return potential.float() if potential.dtype in _RAISED else potential


def differentiable(
    name: str,
    kernels: Kernels,
    num_potentials: int,
    *,
    marginals_alone: Callable[[Tensors, Tensor | None], Tensors] | None = None,
) -> Differentiable:
    """Wrap the kernels of a structure; `name` is how errors call it.

    `marginals_alone` gives the marginals where no gradient is wanted, if that is less than `solve`.
    """
    tangent_function = _tangent_function(name, kernels, num_potentials)
    marginals_function = _marginals_function(kernels, num_potentials, tangent_function)
    log_partition_function = _log_partition_function(kernels, num_potentials, marginals_function)

    def log_partition(potentials: Tensors, mask: Tensor | None) -> Tensor:
        if potentials[0].dtype in _RAISED:
            potentials = tuple(map(raised, potentials))
        if wants_gradient(potentials):
            return log_partition_function.apply(mask, *potentials)
        return kernels.log_partition(potentials, mask)

    def marginals(potentials: Tensors, mask: Tensor | None) -> Tensors:
        if potentials[0].dtype in _RAISED:
            potentials = tuple(map(raised, potentials))
        if wants_gradient(potentials):
            return marginals_function.apply(mask, *potentials)
        if marginals_alone is not None:
            return marginals_alone(potentials, mask)
        return kernels.solve(potentials, mask).marginals

    return Differentiable(log_partition, marginals)


def _sum_like(potential: Tensor, grad: Tensor | None) -> Tensor | None:
    """A full-size gradient, summed over the axes on which the potential is shared."""
    if grad is None or grad.shape == potential.shape:
        return grad
    return grad.sum_to_size(potential.shape)


def _tangent_function(name: str, kernels: Kernels, num_potentials: int) -> Function:
    class Tangent(torch.autograd.Function):
        """The Hessian times a direction. The potentials are inputs only so that asking for a
        derivative of this is an error and not a silent zero.
        """

        @staticmethod
        def forward(ctx: Any, wanted: Any, mask: Any, *tensors: Any) -> Any:
            directions, rest = tensors[:num_potentials], tensors[num_potentials:]
            potentials, saved = rest[:num_potentials], rest[num_potentials:]
            return tuple(
                map(_sum_like, potentials, kernels.tangent(saved, mask, directions, wanted))
            )

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> NoReturn:
            refuse_third_derivative(name)

    return Tangent


def _marginals_function(kernels: Kernels, num_potentials: int, tangent: Function) -> Function:
    class Marginals(torch.autograd.Function):
        """(mask, potentials) -> marginals."""

        @staticmethod
        def forward(ctx: Any, mask: Any, *potentials: Any) -> Any:
            _, found, saved = kernels.solve(potentials, mask)
            ctx.save_for_backward(mask, *potentials, *found, *saved)
            ctx.set_materialize_grads(False)
            return found

        @staticmethod
        def backward(ctx: Any, *directions: Any) -> Any:
            for direction in directions:
                if direction is not None:
                    break
            else:
                return None, *directions
            mask, *tensors = ctx.saved_tensors
            wanted = ctx.needs_input_grad[1:]
            if records_gradient():
                return None, *tangent.apply(wanted, mask, *directions, *tensors)
            along = kernels.tangent(tuple(tensors[num_potentials:]), mask, directions, wanted)
            return None, *map(_sum_like, tensors, along)

    return Marginals


def _log_partition_function(kernels: Kernels, num_potentials: int, marginals: Function) -> Function:
    class LogPartition(torch.autograd.Function):
        """(mask, potentials) -> log Z, with the marginals as gradient."""

        @staticmethod
        def forward(ctx: Any, mask: Any, *potentials: Any) -> Any:
            log_partition, found, _ = kernels.solve(potentials, mask)
            ctx.save_for_backward(mask, *potentials, *found)
            return log_partition

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            mask, *tensors = ctx.saved_tensors
            potentials, found = tensors[:num_potentials], tensors[num_potentials:]
            if records_gradient():
                found = marginals.apply(mask, *potentials)
            results = []
            for potential, part, wanted in zip(
                potentials, found, ctx.needs_input_grad[1:], strict=True
            ):
                weight = grads[0].reshape(-1, *(1,) * (part.ndim - 1))
                results.append(_sum_like(potential, weight * part) if wanted else None)
            return None, *results

    return LogPartition
