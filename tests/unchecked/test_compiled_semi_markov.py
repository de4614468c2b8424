"""SemiMarkov compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor

from foveal.distributions import SemiMarkov


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
def test_the_model_compiles_whole() -> None:
    mask = torch.tensor([[True, True, True], [True, False, True]])

    def loss(segments: Tensor, transitions: Tensor) -> Tensor:
        model = SemiMarkov(segments, transitions, mask)
        return model.marginals().pow(2).sum() + model.log_partition().sum()

    torch.manual_seed(0)
    potentials = torch.randn(2, 3, 2, 2), torch.randn(2, 2)
    grads = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaves = [part.clone().requires_grad_() for part in potentials]
        grads.append(torch.autograd.grad(function(*leaves), leaves))
    torch.testing.assert_close(grads[0], grads[1])
