"""The C++ kernels of `foveal-native`, if they are installed and support the input.

The kernels support float32 and float64 on the CPU. All other inputs, and the transforms of torch.func,
use the passes in PyTorch operations, which are the reference. The environment variable
FOVEAL_KERNELS selects the kernels of a process: `pure` uses only the reference, `baseline` and
`avx2` use kernels with narrower vectors than the CPU supports, `triton` uses only the kernels of
`_triton`.

`differentiable` wraps kernels as `_derivatives` wraps passes, with the least overhead per call:
a small kernel takes less time than torch needs to record it.
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
    """Import the kernels, which registers them; without them the package works, but is slower."""
    try:
        import_module("foveal_native")
    except ImportError:
        return False
    return True


_WANTED = os.environ.get("FOVEAL_KERNELS") not in ("pure", "triton")
_IN_USE = _WANTED and _is_installed()
_RAISED = (torch.float16, torch.bfloat16)
_SERVED = (torch.float32, torch.float64, *_RAISED)


class NativeSolved(NamedTuple):
    """The results of one kernel call."""

    log_partition: Tensor  # (B,)
    marginals: Tensors  # one for each potential
    saved: Tensors  # further inputs of the tangent pass


@runtime_checkable
class Kernels(Protocol):
    """The kernels of one structure; they take potentials and a mask as in `_derivatives.Passes`."""

    def log_partition(self, potentials: Tensors, mask: Tensor | None) -> Tensor:
        """Run only the inside pass."""
        ...

    def solve(self, potentials: Tensors, mask: Tensor | None) -> NativeSolved:
        """Run the inside pass and the outside pass."""
        ...

    def tangent(
        self,
        saved: Tensors,
        mask: Tensor | None,
        directions: tuple[Tensor | None, ...],
        wanted: tuple[bool, ...],
    ) -> tuple[Tensor | None, ...]:
        """Compute the derivative of the marginals; `saved` contains the marginals and `solve(...).saved`."""
        ...


def serves(*potentials: Tensor) -> bool:
    """Return whether the kernels support these potentials."""
    if not _IN_USE:
        if _WANTED and potentials[0].is_cpu and not torch.compiler.is_compiling():
            _tell_of_missing_kernels()
        return False
    dtype = potentials[0].dtype
    for part in potentials:
        if part.dtype != dtype or not part.is_cpu:
            return False
    return dtype in _SERVED and not is_transformed()


def supports_dtype(potential: Tensor) -> bool:
    """Return whether kernels support the dtype, maybe after a conversion to float32."""
    return potential.dtype in _SERVED


@cache
def _tell_of_missing_kernels() -> None:
    """Warn once per process that the kernels are not installed."""
    warnings.warn(
        "foveal-native is not installed, so structures on the CPU run in PyTorch operations, "
        "several times slower. Install the kernels with `pip install --no-build-isolation ./native` "
        "from the source folder, or set FOVEAL_KERNELS=pure to go without them.",
        MissingKernelsWarning,
        stacklevel=2,
    )


def raised(potential: Tensor) -> Tensor:
    """Convert half precision to float32."""
    return potential.float() if potential.dtype in _RAISED else potential


def differentiable(
    name: str,
    kernels: Kernels,
    num_potentials: int,
    *,
    marginals_alone: Callable[[Tensors, Tensor | None], Tensors] | None = None,
) -> Differentiable:
    """Wrap the kernels of a structure; error messages contain `name`.

    `marginals_alone` computes the marginals without a gradient, if that is cheaper than `solve`.
    """
    tangent_function = _tangent_function(name, kernels, num_potentials)
    marginals_function = _marginals_function(kernels, tangent_function)
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


def _sum_like(shape: torch.Size, grad: Tensor | None) -> Tensor | None:
    """Sum a full-size gradient over the axes on which the potential is shared."""
    if grad is None or grad.shape == shape:
        return grad
    return grad.sum_to_size(shape)


def _tangent_function(name: str, kernels: Kernels, num_potentials: int) -> Function:
    class Tangent(torch.autograd.Function):
        """(directions, saved) -> the Hessian times the directions. `saved` contains the marginals, so a
        derivative of this Function in the potentials is an error instead of a silent zero.
        """

        @staticmethod
        def forward(ctx: Any, wanted: Any, mask: Any, *tensors: Any) -> Any:
            directions, saved = tensors[:num_potentials], tensors[num_potentials:]
            return kernels.tangent(saved, mask, directions, wanted)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> NoReturn:
            refuse_third_derivative(name)

    return Tangent


def _marginals_function(kernels: Kernels, tangent: Function) -> Function:
    class Marginals(torch.autograd.Function):
        """(mask, potentials) -> marginals."""

        @staticmethod
        def forward(ctx: Any, mask: Any, *potentials: Any) -> Any:
            _, found, saved = kernels.solve(potentials, mask)
            ctx.save_for_backward(mask, *found, *saved)
            ctx.shapes = [part.shape for part in potentials]
            ctx.set_materialize_grads(False)
            return found

        @staticmethod
        def backward(ctx: Any, *directions: Any) -> Any:
            for direction in directions:
                if direction is not None:
                    break
            else:
                return None, *directions
            mask, *saved = ctx.saved_tensors
            wanted = ctx.needs_input_grad[1:]
            if records_gradient():
                along = tangent.apply(wanted, mask, *directions, *saved)
            else:
                along = kernels.tangent(tuple(saved), mask, directions, wanted)
            return None, *map(_sum_like, ctx.shapes, along)

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
                results.append(_sum_like(potential.shape, weight * part) if wanted else None)
            return None, *results

    return LogPartition
