"""Records the launches of an op without a GPU: the kernels, the types of their arguments and their constants.

The ops run on tensors of the device "meta", which have a shape and no memory. The recorded launches are therefore exactly
the launches on a GPU.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from foveal_triton import _launching
from torch import Tensor

_NAMES = {
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "i1",
}
# Options of the compiler, which are not arguments of a kernel.
_OPTIONS = ("num_warps",)


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    kernel: Any  # a function with the decorator triton.jit
    grid: tuple[int, ...]
    arguments: tuple[tuple[str, str], ...]  # name, and type such as *fp32 or i32
    constants: tuple[tuple[str, Any], ...]
    numbers: tuple[tuple[str, int], ...]  # arguments that are not tensors
    warps: int
    num_bytes: int  # of all tensors, each counted once

    @property
    def name(self) -> str:
        """The name of the kernel, after its module."""
        module = self.kernel.__module__.rpartition(".")[2].strip("_")
        return f"{module.partition('_')[0]} {self.kernel.__name__}"

    @property
    def programs(self) -> int:
        """The number of programs."""
        return math.prod(self.grid)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of all arguments."""
        return tuple(kind for _, kind in self.arguments)


def _argument(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"*{_NAMES[value.dtype]}"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


class _Recorder:
    """Stands for a kernel in a launch `recorder[grid](...)`."""

    def __init__(self, kernel: Any, launches: list[Launch]) -> None:
        self.kernel, self.launches = kernel, launches

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*args: Any, **options: Any) -> None:
            names = self.kernel.arg_names
            given = dict(zip(names, args, strict=False))
            constants = {name: value for name, value in options.items() if name not in _OPTIONS}
            tensors = {id(value): value for value in args if isinstance(value, Tensor)}
            self.launches.append(
                Launch(
                    self.kernel,
                    grid,
                    tuple((name, _argument(value)) for name, value in given.items()),
                    tuple(constants.items()),
                    tuple((n, v) for n, v in given.items() if not isinstance(v, Tensor)),
                    options["num_warps"],
                    sum(part.numel() * part.element_size() for part in tensors.values()),
                )
            )

        return launch


def launches_of(call: Callable[[], Any], *, amd: bool = False) -> list[Launch]:
    """Return the launches of a call with tensors on the device "meta", on NVIDIA or on AMD."""
    with recorded() as launches, patch.object(torch.version, "hip", "on AMD" if amd else None):
        call()
    return launches


@contextmanager
def recorded() -> Iterator[list[Launch]]:
    """Record the launches inside, in place of running them; call ops on tensors of the device "meta"."""
    launches: list[Launch] = []
    with patch.object(_launching, "wrap_triton", lambda kernel: _Recorder(kernel, launches)):
        yield launches
