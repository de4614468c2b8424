"""The structures that have Triton kernels, and helpers of their tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from foveal_triton import _launching
from torch import Tensor

from tests.inference.test_ctc import enumerated
from tests.structures.inputs import Case, case

# `Alignment.ctc` has the kernels of `Alignment` and takes longest.
NAMES = (
    "LinearChain",
    "LinearChain, shared",
    "LinearChain, many states",
    "SemiMarkov",
    "SemiMarkov, many labels",
    "Alignment",
    "Alignment.one_to_many",
    "ProjectiveTree",
    "ProjectiveTree, any roots",
    "SpanTree",
    "SpanTree, labeled",
)


@contextmanager
def served() -> Iterator[list[str]]:
    """Fail unless the code inside launches kernels; yield their modules and names."""
    launched: list[str] = []
    run = _launching.run

    def observed(kernel: Any, *given: Any) -> None:
        launched.append(f"{kernel.fn.__module__}.{kernel.fn.__name__}")
        run(kernel, *given)

    with patch.object(_launching, "run", observed):
        yield launched
    assert launched, "no Triton kernel was launched: the reference passes ran"


@cache
def joined(name: str, inputs: tuple[str, ...]) -> Case:
    """Return the items of several kinds of inputs as one batch."""
    cases = [case(name, one) for one in inputs]
    if cases[0].kind.shared:
        return cases[1]  # each input has its own shared potentials
    parts = [torch.cat(parts) for parts in zip(*(one.potentials for one in cases), strict=True)]
    others = [torch.cat(parts) for parts in zip(*(one.others for one in cases), strict=True)]
    masks = [torch.cat(parts) for parts in zip(*(one.masks for one in cases), strict=True)]
    return Case(cases[0].kind, parts, others, masks, given=True)


def weights(like: Tensor) -> Tensor:
    """Return a fixed direction."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(like.shape, generator=generator, dtype=torch.float64).to(like.dtype)


def ctc_batch(dtype: torch.dtype) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Return log-probabilities, labels and masks, with holes and two forbidden symbols."""
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.randn(6, 5, 4, generator=generator, dtype=torch.float64).to(dtype)
    log_probs[1, 2, 1] = log_probs[2, 4, 0] = -torch.inf
    targets = torch.tensor([[1, 2, 1], [1, 1, 2], [2, 1, 1], [2, 2, 2], [1, 2, 1], [1, 1, 1]])
    label_mask = targets.new_ones(6, 3).bool()
    label_mask[1, 1] = label_mask[2, 0] = label_mask[3, 2] = False
    label_mask[4] = False
    frame_mask = torch.ones(6, 5, dtype=torch.bool)
    frame_mask[2, 1] = frame_mask[3, 4] = frame_mask[5, 0] = False
    return log_probs, targets, (frame_mask, label_mask)


def enumerated_ctc(
    log_probs: Tensor, targets: Tensor, masks: tuple[Tensor, Tensor], blank: int
) -> tuple[Tensor, Tensor]:
    """Return log Z and the marginals, 0 on masked frames, from all sequences of symbols."""
    totals = []
    marginals = torch.zeros_like(log_probs, dtype=torch.float64)
    for item, (frames, labels) in enumerate(zip(*masks, strict=True)):
        scores = log_probs[item, frames].double()
        total, found = enumerated(scores, targets[item, labels].tolist(), blank)
        marginals[item, frames] = found
        totals.append(total)
    return torch.stack(totals), marginals


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
