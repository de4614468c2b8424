"""Launches kernels: on a GPU in a form that torch.compile can trace, in the interpreter directly."""

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.library import triton_op, wrap_triton

# Triton reads the variable when a kernel is defined.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

Grid = tuple[int, ...]


def op(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as the op `torch.ops.foveal_triton.<name>`. Its launches need no separate
    shape function: with fake tensors, `launch` does nothing.
    """
    return triton_op(f"foveal_triton::{name}", mutates_args=())


def launch(kernel: Any, grid: Grid, *args: Any, **options: Any) -> None:
    """Run a kernel on one program for each entry of the grid. The batch is on the first axis, the only
    one that may be longer than 65535.

    Args:
        kernel: A function with the decorator `triton.jit`.
        grid: The number of programs along each axis.
        args: Tensors and numbers, in the order of the kernel.
        options: Constants of the kernel, and `num_warps`.

    Raises:
        RuntimeError: The tensors are on more than one device.
    """
    devices = {str(arg.device) for arg in args if isinstance(arg, Tensor)}
    if len(devices) > 1:
        raise RuntimeError(
            f"{kernel.__name__}: all tensors must be on one device, got {', '.join(sorted(devices))}. "
            f"Move them with .to(device)."
        )
    if 0 not in grid:
        run(kernel, grid, args, options)


def run(kernel: Any, grid: Grid, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Run a kernel in the interpreter or on a GPU; `wrap_triton` lets torch.compile trace the launch.

    Args:
        kernel: A function with the decorator `triton.jit`.
        grid: The number of programs along each axis.
        args: Tensors and numbers, in the order of the kernel.
        options: Constants of the kernel, and `num_warps`.
    """
    if INTERPRETED:
        kernel[grid](*args, **options)
    else:
        wrap_triton(kernel)[grid](*args, **options)


def power_of_two(size: int) -> int:
    """Return the smallest power of two that is at least `size`."""
    return 1 << max(0, size - 1).bit_length()


def has_fast_log(like: Tensor) -> bool:
    """Return whether kernels may use the fast logarithm: float32 on NVIDIA."""
    return not INTERPRETED and torch.version.hip is None and like.dtype == torch.float32


def stages_ahead(like: Tensor) -> int:
    """Return how many steps the loads of an alignment, of CTC or of a semi-Markov model run ahead at most. Masks of
    float64 loads need too many scalar registers on AMD, so there they do not run ahead.
    """
    return 1 if torch.version.hip is not None and like.dtype == torch.float64 else 4


def tile_size() -> int:
    """Return the number of entries of a small tile: four for each lane of a warp. The time of the
    interpreter depends on the number of programs and not on their size, so it gets large tiles.
    """
    return 8192 if INTERPRETED else 128
