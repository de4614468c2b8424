"""Checks of the requested derivatives, and the errors for unsupported ones."""

from typing import NoReturn

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch.autograd import forward_ad

from ..errors import DerivativeError
from ._passes import Tensors


def wants_gradient(potentials: Tensors) -> bool:
    """Return whether autograd records operations on these potentials."""
    if torch.is_grad_enabled():
        for part in potentials:  # a loop, because any() creates a generator in every call
            if part.requires_grad:
                return True
    return False


def is_transformed() -> bool:
    """Return whether a transform of `torch.func` or forward-mode AD is active. Return False while
    compiling, because the compiler traces transforms without our help.
    """
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def records_gradient() -> bool:
    """Return whether autograd records the current backward for another derivative. It never records
    a compiled backward, which may not contain a Function.
    """
    return torch.is_grad_enabled() and not torch.compiler.is_compiling()


def sum_like(potential: Tensor, grad: Tensor | None) -> Tensor | None:
    """Sum a full-size gradient over the axes on which the potential is shared."""
    return None if grad is None else grad.sum_to_size(potential.shape).to(potential.dtype)


def refuse_third_derivative(name: str) -> NoReturn:
    """Raise an error instead of differentiating a tangent pass."""
    raise DerivativeError(
        f"{name}: two derivatives of the log-partition (one of the marginals) can be "
        f"taken, got a request for one more. Take the gradient of the marginals without "
        f"create_graph=True, or differentiate a detached copy."
    )


def refuse_forward_over_forward(name: str) -> None:
    """Raise an error if forward-mode AD is nested: torch runs the forward rule of a Function without
    the outer level, and the outer derivative would silently be 0.
    """
    levels = get_interpreter_stack() or ()
    if sum(level.key() == TransformType.Jvp for level in levels) > 1:
        raise DerivativeError(
            f"{name}: forward-mode AD cannot be nested, got a jvp (or jacfwd) inside another. Use "
            f"torch.func.hessian, jacfwd(jacrev(...)) or jacrev(jacrev(...)) for second derivatives."
        )
