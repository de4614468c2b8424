"""Sparse distributions of the orders solved by sorting compile with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import Entmax, SparseChain


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_sparse_distributions_compile_whole(alpha: float) -> None:
    mask = torch.tensor([[True, True, False], [True, True, True]])

    def loss(unary: Tensor, transitions: Tensor) -> Tensor:
        chain = SparseChain(unary, transitions, mask, alpha=alpha)
        choice = Entmax(unary[..., 0], mask, alpha=alpha)
        return (
            chain.smoothed_max().sum()
            + (chain.marginals() * choice.marginals()[..., None])[..., 0].sum()
        )

    generator = torch.Generator().manual_seed(0)
    unary = torch.randn(2, 3, 2, generator=generator, requires_grad=True)
    transitions = torch.randn(2, 2, generator=generator, requires_grad=True)
    found = [
        torch.autograd.grad(function(unary, transitions), (unary, transitions))
        for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager"))
    ]
    for plain, compiled in zip(*found, strict=True):
        assert_close(compiled, plain)
