"""The precision of inference: float64 inside; results are float64 or float32, never narrower."""

from contextlib import AbstractContextManager, nullcontext
from functools import reduce

import torch
from torch import Tensor


def result_dtype(*potentials: Tensor) -> torch.dtype:
    """The widest dtype of the potentials, at least float32."""
    dtypes = [part.dtype for part in potentials]
    return reduce(torch.promote_types, dtypes, torch.float32)


def without_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """A context in which matrix products keep their dtype. Autocast would take them in half
    precision, and products of many probabilities lose all but two digits there.
    """
    kind = tensor.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()
