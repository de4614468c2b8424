"""Alignment compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import Alignment


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
