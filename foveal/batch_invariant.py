"""Batch-invariant operations: the result for a row is bit-identical for every batch size.

Linear algebra libraries use different kernels for few rows and for many, and these kernels add up in different
orders. torch computes the sigmoid of most entries of a tensor with vector instructions and the last entries one by
one, which rounds differently. Without gradients, as in prediction, `linear` therefore pads the rows up to the
smallest number for which only one kernel is used, and `sigmoid` computes an exponential. See docs/decisions/0012.

Axes: *batch any leading shape, D width of an input, G of an output.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

# From this number of rows on the kernel is the same: measured with MKL 2024.2 for D = 16 to 2,048.
LEAST_ROWS = 16


def linear(
    inputs: Float[Tensor, "*batch D"],
    weight: Float[Tensor, "G D"],
    bias: Float[Tensor, " G"] | None = None,
) -> Float[Tensor, "*batch G"]:
    """Compute W x + b for every row.

    Args:
        inputs: The rows x.
        weight: The matrix W.
        bias: The vector b; None for 0.

    Returns:
        One output for each row.

    Examples:
        >>> linear(torch.ones(1, 2), torch.eye(2))
        tensor([[1., 1.]])
    """
    if torch.is_grad_enabled():
        return nn.functional.linear(inputs, weight, bias)
    if (
        len(weight) == 1
    ):  # matrix-vector kernels process rows in groups of four and the remaining rows differently
        scores = (inputs * weight[0]).sum(-1, keepdim=True)
        return scores if bias is None else scores + bias
    num_rows = inputs.numel() // max(1, inputs.shape[-1])
    if num_rows == 0 or num_rows >= LEAST_ROWS:
        return nn.functional.linear(inputs, weight, bias)
    rows = inputs.reshape(num_rows, inputs.shape[-1])
    rows = pad(rows, (0, 0, 0, LEAST_ROWS - num_rows))
    return nn.functional.linear(rows, weight, bias)[:num_rows].view(*inputs.shape[:-1], len(weight))


def sigmoid(scores: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Compute 1 / (1 + exp(-x)).

    Args:
        scores: The numbers x.

    Returns:
        The sigmoid of each number, in the shape of the scores.

    Examples:
        >>> sigmoid(torch.tensor([-torch.inf, 0.0, torch.inf]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    if torch.is_grad_enabled():
        return torch.sigmoid(scores)
    return torch.exp(-scores).add_(1.0).reciprocal_()


@final
class Linear(nn.Linear):
    """A batch-invariant `torch.nn.Linear` with the same parameters and parameter names."""

    @override
    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)
