"""Code with separate compiled and eager forms compiles with torch.compile(fullgraph=True)."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.attention import Memory, softmax_attention
from foveal.networks.decoders._token_loss import token_loss


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from torch's compiler
def test_attention_and_loss_compile_whole() -> None:
    torch.manual_seed(0)
    attention = softmax_attention(5, 6)
    values, targets = torch.randn(2, 4, 6), torch.randint(9, (6,))
    weight, bias = torch.randn(9, 6, requires_grad=True), torch.zeros(9, requires_grad=True)

    def loss(query: Tensor) -> Tensor:
        context = attention(query, attention.remember(Memory(values))).context
        return token_loss(context.flatten(0, 1), weight, bias, targets, 0.1)[0].mean()

    found = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        query = torch.linspace(-1, 1, 30).view(2, 3, 5).requires_grad_()
        value = function(query)
        found.append((value, *torch.autograd.grad(value, (query, weight, bias))))
    for plain, compiled in zip(*found, strict=True):
        assert_close(compiled, plain)
