"""What precision goes in and out: float64 inside, half precision raised to float32."""

import torch
from torch import Tensor


def result_dtype(potentials: Tensor) -> torch.dtype:
    """float64 gives float64; everything narrower gives float32."""
    return torch.promote_types(potentials.dtype, torch.float32)
