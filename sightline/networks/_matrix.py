"""A matrix of weights made ready for many products, without gradients.

    rows W,   bias + rows W,   sums + rows W

Transposed beforehand, it is multiplied with a few rows in about half the time. In half precision
products of many rows are made in bfloat16, and what is added up is float32: on a processor with
instructions for it up to six times faster, at three digits. For a few rows it would be slower there,
so that these are float32 all the same.

Axes: N rows, D width of a row, G width of a product.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

# From so many rows on half precision is faster; measured for D = 256 and G = 1,024.
_MANY_ROWS = 48


@final
class Matrix:
    """The matrix as it is now.

    >>> Matrix(torch.eye(2)).times(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    def __init__(self, weight: Float[Tensor, "D G"], *, half: bool = False) -> None:
        self._weight = weight.detach().contiguous()
        self._half = self._weight.to(torch.bfloat16) if half else None

    def times(self, rows: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        """rows W, a new tensor."""
        if self._half is None or len(rows) < _MANY_ROWS:
            return rows @ self._weight
        return (rows.to(torch.bfloat16) @ self._half).to(rows.dtype)

    def plus(self, bias: Float[Tensor, " G"], rows: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        """bias + rows W, a new tensor."""
        if self._half is None or len(rows) < _MANY_ROWS:
            return torch.addmm(bias, rows, self._weight)
        return (rows.to(torch.bfloat16) @ self._half) + bias

    def add_to(self, sums: Float[Tensor, "N G"], rows: Float[Tensor, "N D"]) -> None:
        """sums + rows W, in place."""
        if self._half is None or len(rows) < _MANY_ROWS:
            sums.addmm_(rows, self._weight)
        else:
            sums.add_(rows.to(torch.bfloat16) @ self._half)
