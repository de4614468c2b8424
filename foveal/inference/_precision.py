"""The precision of inference: computations use float64; results are float64 or float32."""

from contextlib import AbstractContextManager, nullcontext
from functools import reduce

import torch
from torch import Tensor


def result_dtype(*potentials: Tensor) -> torch.dtype:
    """Return the widest dtype of the potentials, at least float32."""
    dtypes = [part.dtype for part in potentials]
    return reduce(torch.promote_types, dtypes, torch.float32)


def without_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which matrix products keep their dtype. Autocast would compute them in half
    precision, where products of many probabilities keep only two digits.
    """
    kind = tensor.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()
