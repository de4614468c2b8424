"""The structures that have Triton kernels, and helpers of their tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from foveal_triton import _launching
from torch import Tensor

NAMES = (
    "LinearChain",
    "LinearChain, shared",
    "LinearChain, many states",
    "Alignment",
    "Alignment.one_to_many",
    "Alignment.ctc",
)


@contextmanager
def served() -> Iterator[list[str]]:
    """Fail unless the code inside launches kernels; yield their names."""
    launched: list[str] = []
    run = _launching.run

    def observed(kernel: Any, *given: Any) -> None:
        launched.append(kernel.__name__)
        run(kernel, *given)

    with patch.object(_launching, "run", observed):
        yield launched
    assert launched, "no Triton kernel was launched: the reference passes ran"


def exact(found: Tensor, expected: Tensor, what: str, *, scale: float = 1.0) -> None:
    """Check the accuracy that the library promises: 1e-5 in float32 for scale 1."""
    tolerance = scale * (1e-9 if found.dtype == torch.float64 else 1e-5)
    torch.testing.assert_close(
        found.detach().double(),
        expected.detach(),
        rtol=tolerance,
        atol=tolerance,
        msg=lambda text: f"{what}: {text}",
    )
