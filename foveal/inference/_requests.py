"""Which derivatives a caller may ask for, and the error for those that do not exist."""

from typing import NoReturn

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch.autograd import forward_ad

from ..errors import DerivativeError
from ._passes import Tensors


def wants_gradient(potentials: Tensors) -> bool:
    """Whether autograd records operations on these potentials."""
    if torch.is_grad_enabled():
        for part in potentials:  # a loop: any() makes a generator, in every call
            if part.requires_grad:
                return True
    return False


def is_transformed() -> bool:
    """Whether a transform of `torch.func` or forward-mode AD is active. Not asked while compiling:
    the compiler traces transforms by itself.
    """
    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def records_gradient() -> bool:
    """Whether a backward is itself to be differentiated. A compiled backward never is, and may not
    hold a Function.
    """
    return torch.is_grad_enabled() and not torch.compiler.is_compiling()


def sum_like(potential: Tensor, grad: Tensor | None) -> Tensor | None:
    """A full-size gradient, summed over the axes on which the potential is shared."""
    return None if grad is None else grad.sum_to_size(potential.shape).to(potential.dtype)


def refuse_third_derivative(name: str) -> NoReturn:
    """Raise in place of differentiating a tangent pass."""
    raise DerivativeError(
        f"{name}: two derivatives of the log-partition (one of the marginals) can be "
        f"taken, got a request for one more. Take the gradient of the marginals without "
        f"create_graph=True, or differentiate a detached copy."
    )


def refuse_forward_over_forward(name: str) -> None:
    """Raise where forward-mode AD is nested: torch runs the forward rule of a Function without the
    outer level, and the outer derivative would be 0 without a word.
    """
    levels = get_interpreter_stack() or ()
    if sum(level.key() == TransformType.Jvp for level in levels) > 1:
        raise DerivativeError(
            f"{name}: forward-mode AD cannot be nested, got a jvp (or jacfwd) inside another. Use "
            f"torch.func.hessian, jacfwd(jacrev(...)) or jacrev(jacrev(...)) for second derivatives."
        )
