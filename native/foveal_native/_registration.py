"""Registers the shape functions of the ops."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from . import _kernels as _kernels  # registers the ops

Shapes = Callable[..., Any]


def register(name: str) -> Callable[[Shapes], Shapes]:
    """Register a shape function for an op, for tensors that are all on one device.

    torch also calls it where one argument is on "meta" and another holds numbers. There is no answer
    then, and the memory that the shape function allocates must not pass for one.
    """

    def decorate(shapes: Shapes) -> Shapes:
        @wraps(shapes)
        def on_one_device(*args: Any, **kwargs: Any) -> Any:
            tensors = [part for part in (*args, *kwargs.values()) if isinstance(part, Tensor)]
            devices = sorted({str(part.device) for part in tensors})
            if len(devices) > 1:
                raise RuntimeError(
                    f"{name}: all tensors must be on one device, got {', '.join(devices)}"
                )
            return shapes(*args, **kwargs)

        return torch.library.register_fake(name, on_one_device)

    return decorate
