"""SpanningTree compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor

from foveal.distributions import SpanningTree


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
@pytest.mark.parametrize("single_root", [True, False])
def test_the_tree_compiles_whole(single_root: bool) -> None:
    mask = torch.tensor([[True, True, True], [True, False, True]])

    def loss(arcs: Tensor) -> Tensor:
        tree = SpanningTree(arcs, single_root=single_root, mask=mask)
        return tree.marginals().pow(2).sum() + tree.log_partition().sum()

    torch.manual_seed(0)
    arcs = torch.randn(2, 4, 4)
    grads = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaf = arcs.clone().requires_grad_()
        function(leaf).backward()
        grads.append(leaf.grad)
    torch.testing.assert_close(grads[0], grads[1])
