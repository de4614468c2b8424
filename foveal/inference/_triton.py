"""The Triton kernels of `foveal-triton`, if they are installed and support the input.

The kernels support float32 and float64 on a GPU. Their ops have the arguments of the ops of
`foveal-native`, so `ops_of` selects one or the other for the functions of `<structure>/_native.py`.

FOVEAL_KERNELS=triton selects them even if torch was built without CUDA or ROCm: with TRITON_INTERPRET=1,
they then run on CPU tensors in Triton's interpreter, for tests.
"""

import os
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ._native import supports_dtype
from ._requests import is_transformed

_CHOICE = os.environ.get("FOVEAL_KERNELS")
_CHOSEN = _CHOICE == "triton"
_INTERPRETED = _CHOSEN and os.environ.get("TRITON_INTERPRET") == "1"


def _is_installed() -> bool:
    """Import the kernels, which registers their ops."""
    try:
        import_module("foveal_triton")
    except ImportError:
        if _CHOSEN:
            raise
        return False
    return True


_HAS_GPU = torch.version.cuda is not None or torch.version.hip is not None
_IN_USE = (_CHOSEN or (_CHOICE != "pure" and _HAS_GPU)) and _is_installed()
_DEVICE = "cpu" if _INTERPRETED else "cuda"
_ON_CPU = torch.ops.foveal_triton if _INTERPRETED else torch.ops.foveal_native
_ON_GPU = torch.ops.foveal_triton


def serves(*potentials: Tensor) -> bool:
    """Return whether the kernels support these potentials: all on one GPU, and of one dtype."""
    if not _IN_USE:
        return False
    first = potentials[0]
    for part in potentials:
        if part.dtype != first.dtype or part.device != first.device:
            return False
    return first.device.type == _DEVICE and supports_dtype(first) and not is_transformed()


def ops_of(potential: Tensor) -> Any:
    """Return the ops for the device of a potential: those of C++ or those of Triton."""
    return _ON_CPU if potential.is_cpu else _ON_GPU
