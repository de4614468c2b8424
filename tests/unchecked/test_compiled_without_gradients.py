"""Without gradients, PyTorch operations pass torch.compile(fullgraph=True) and torch.export."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from typing_extensions import override

from foveal.distributions import (
    Alignment,
    Entmax,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
    SparseChain,
    Sparsemax,
)
from foveal.inference import _native

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler

TABLE = torch.tensor([[0.5, -1.0], [0.2, 0.1]])

DENSE: dict[str, tuple[Callable[[Tensor], Any], tuple[int, ...]]] = {
    "LinearChain": (lambda unary: LinearChain(unary, TABLE), (2, 3, 2)),
    "SemiMarkov": (lambda segments: SemiMarkov(segments, TABLE), (2, 3, 2, 2)),
    "Alignment": (Alignment, (2, 2, 3, 3)),
    "KSubset": (lambda scores: KSubset(scores, 2), (2, 3)),
    "ProjectiveTree": (ProjectiveTree, (2, 4, 4)),
    "SpanningTree": (SpanningTree, (2, 4, 4)),
    "SpanTree": (SpanTree, (2, 3, 3)),
}
SPARSE: dict[str, tuple[Callable[[Tensor], Any], tuple[int, ...]]] = {
    "Sparsemax": (Sparsemax, (2, 3)),
    "Entmax": (Entmax, (2, 3)),
    "SparseChain": (lambda unary: SparseChain(unary, TABLE), (2, 3, 2)),
}


@pytest.mark.parametrize(
    ("name", "grad_mode"),
    [
        *((name, torch.enable_grad) for name in (*DENSE, *SPARSE)),
        *((name, torch.no_grad) for name in ("KSubset", "Sparsemax")),
    ],
)
def test_compiled_answers_equal_eager_ones(
    name: str, grad_mode: Callable[[], torch.no_grad], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "_IN_USE", False)
    monkeypatch.setattr(_native, "_WANTED", False)
    build, shape = {**DENSE, **SPARSE}[name]

    def answers(scores: Tensor) -> tuple[Tensor, Tensor]:
        distribution = build(scores)
        total = distribution.log_partition() if name in DENSE else distribution.smoothed_max()
        return total, distribution.marginals()

    scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    torch._dynamo.reset()
    with grad_mode():
        compiled = torch.compile(answers, fullgraph=True, backend="eager")(scores)
    for found, expected in zip(compiled, answers(scores), strict=True):
        assert_close(found, expected)


class Attend(nn.Module):
    @override
    def forward(self, scores: Tensor) -> Tensor:
        return Sparsemax(scores).marginals()


def test_exported_sparsemax() -> None:
    scores = torch.tensor([[1.0, 0.6, 0.1]])
    exported = torch.export.export(Attend(), (scores,), strict=True)
    assert_close(exported.module()(scores), torch.tensor([[0.7, 0.3, 0.0]]))
