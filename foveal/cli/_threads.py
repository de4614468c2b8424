"""The switch --threads of commands that compute."""

import torch

from ..errors import ValueRangeError


def use_threads(number: int | None) -> None:
    """Set the number of threads that torch uses; None keeps the current number."""
    if number is None:
        return
    if number < 1:
        raise ValueRangeError(f"--threads must be at least 1, got {number}. Use 1 or more.")
    torch.set_num_threads(number)
