"""KSubset compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor

from foveal.distributions import KSubset


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
def test_subsets_compile_whole() -> None:
    mask = torch.arange(6) < torch.tensor([6, 4, 3]).unsqueeze(-1)

    def loss(scores: Tensor) -> Tensor:
        subset = KSubset(scores, 2, mask)
        return subset.marginals().pow(2).sum() + subset.log_partition().sum()

    torch.manual_seed(0)
    scores = torch.randn(3, 6)
    grads = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaf = scores.clone().requires_grad_()
        function(leaf).backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(grads[0], grads[1])
