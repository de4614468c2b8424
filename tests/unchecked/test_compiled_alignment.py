"""Alignment compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import Alignment
from foveal.inference import ctc_log_partition


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
@pytest.mark.parametrize("with_mask", [True, False])
def test_the_alignment_compiles_whole(with_mask: bool) -> None:
    torch.manual_seed(0)
    moves = torch.randn(2, 4, 5, 3, requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, True]]) if with_mask else None

    def loss(moves: Tensor) -> Tensor:
        model = Alignment(moves, mask)
        return (model.marginals() ** 2).sum() + model.log_partition().sum()

    found = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        value = function(moves)
        found.append((value, *torch.autograd.grad(value, moves)))
    for plain, compiled in zip(*found, strict=True):
        assert_close(compiled, plain)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
def test_ctc_compiles_whole() -> None:
    torch.manual_seed(0)
    scores, targets = torch.randn(2, 6, 4, requires_grad=True), torch.tensor([[1, 1], [3, 2]])
    mask = torch.tensor([[True, False], [True, True]])

    def loss(scores: Tensor) -> Tensor:
        return -ctc_log_partition(scores.log_softmax(-1), targets, None, mask).sum()

    found = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        value = function(scores)
        found.append((value, *torch.autograd.grad(value, scores)))
    torch.testing.assert_close(*found)
