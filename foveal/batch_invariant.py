"""Operations in which what a row gives does not depend on how many other rows there are, to the last bit.

For a few rows, libraries of linear algebra choose other kernels than for many, whose sums are in another
order. And of a whole tensor, torch takes the sigmoid of the first entries by vectors and of the last ones
one by one, which rounds differently. Where no gradient is wanted, as in prediction, rows are therefore
filled up to the least for which there is but one kernel, and the sigmoid is made of an exponential. See
docs/decisions/0012.

Axes: *batch any leading shape, D width of an input, G of an output.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

# From so many rows on the kernel is the same: measured with MKL 2024.2 for D = 16 to 2,048.
LEAST_ROWS = 16


def linear(
    inputs: Float[Tensor, "*batch D"],
    weight: Float[Tensor, "G D"],
    bias: Float[Tensor, " G"] | None = None,
) -> Float[Tensor, "*batch G"]:
    """W x + b of every row.

    >>> linear(torch.ones(1, 2), torch.eye(2))
    tensor([[1., 1.]])
    """
    if torch.is_grad_enabled():
        return nn.functional.linear(inputs, weight, bias)
    if (
        len(weight) == 1
    ):  # kernels for a matrix times a vector take rows by fours, and those left over
        scores = (inputs * weight[0]).sum(-1, keepdim=True)
        return scores if bias is None else scores + bias
    num_rows = inputs.numel() // max(1, inputs.shape[-1])
    if num_rows == 0 or num_rows >= LEAST_ROWS:
        return nn.functional.linear(inputs, weight, bias)
    rows = inputs.reshape(num_rows, inputs.shape[-1])
    rows = pad(rows, (0, 0, 0, LEAST_ROWS - num_rows))
    return nn.functional.linear(rows, weight, bias)[:num_rows].view(*inputs.shape[:-1], len(weight))


def sigmoid(scores: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """1 / (1 + exp(-x)).

    >>> sigmoid(torch.tensor([-torch.inf, 0.0, torch.inf]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if torch.is_grad_enabled():
        return torch.sigmoid(scores)
    return torch.exp(-scores).add_(1.0).reciprocal_()


@final
class Linear(nn.Linear):
    """torch's layer, with its parameters and their names."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)
