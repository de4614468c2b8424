"""The switch --threads of commands that compute."""

import torch

from ..errors import ValueRangeError


def use_threads(number: int | None) -> None:
    """Let torch compute with so many threads from now on; None leaves it as it is."""
    if number is None:
        return
    if number < 1:
        raise ValueRangeError(
            f"--threads must be at least 1, got {number}. Give the number of threads, such as 1."
        )
    torch.set_num_threads(number)
