"""LinearChain compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor

from foveal.distributions import LinearChain


def loss(unary: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    chain = LinearChain(unary, transitions, mask)
    on_pairs = chain.pair_marginals().pow(2).sum()
    return chain.marginals()[..., 1].pow(2).sum() + on_pairs + chain.log_partition().sum()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_the_chain_compiles_whole(backend: str) -> None:
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, True, True], [True, False, True, False]])
    grads = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend=backend)):
        torch.manual_seed(1)
        unary = torch.randn(2, 4, 2, requires_grad=True)
        transitions = torch.randn(2, 2, requires_grad=True)
        function(unary, transitions, mask).backward()
        grads.append((unary.grad, transitions.grad))
    torch.testing.assert_close(grads[0], grads[1])
