"""A matrix of weights made ready for many products, without gradients.

    rows W,   bias + rows W,   sums + rows W

Transposed beforehand, it is multiplied with a few rows in about half the time. In half precision
products of many rows are made in bfloat16, and what is added up is float32: on a processor with
instructions for it up to six times faster, at three digits. For a few rows it would be slower there,
so that these are float32 all the same.

What a row gives must not depend on how many others are beside it, and libraries have kernels for one row
and for many wide ones whose sums are in another order. So a row by itself is multiplied twice over, as two
rows, and of wide rows no more than some at once; see docs/decisions/0012.

Axes: N rows, D width of a row, G width of a product.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

# Measured with MKL 2024.2: for rows as wide as this the order of a sum is the same for any number of
# them from 2 on, for wider ones from 2 to some 190.
_WIDE, _MOST_WIDE_ROWS = 768, 128
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
        if self._is_too_much(rows):
            return torch.cat([self.times(some) for some in rows.split(_MOST_WIDE_ROWS)])
        if len(rows) == 1:
            return (rows.expand(2, -1) @ self._weight)[:1]
        if self._half is None or len(rows) < _MANY_ROWS:
            return rows @ self._weight
        return (rows.to(torch.bfloat16) @ self._half).to(rows.dtype)

    def plus(self, bias: Float[Tensor, " G"], rows: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        """bias + rows W, a new tensor."""
        if self._is_too_much(rows):
            return torch.cat([self.plus(bias, some) for some in rows.split(_MOST_WIDE_ROWS)])
        if len(rows) == 1:
            return torch.addmm(bias, rows.expand(2, -1), self._weight)[:1]
        if self._half is None or len(rows) < _MANY_ROWS:
            return torch.addmm(bias, rows, self._weight)
        return (rows.to(torch.bfloat16) @ self._half) + bias

    def add_to(self, sums: Float[Tensor, "N G"], rows: Float[Tensor, "N D"]) -> None:
        """sums + rows W, in place."""
        if self._is_too_much(rows):
            pieces = zip(sums.split(_MOST_WIDE_ROWS), rows.split(_MOST_WIDE_ROWS), strict=True)
            for part, some in pieces:
                self.add_to(part, some)
        elif len(rows) == 1:
            both = torch.addmm(sums.expand(2, -1), rows.expand(2, -1), self._weight)
            sums.copy_(both[:1])
        elif self._half is None or len(rows) < _MANY_ROWS:
            sums.addmm_(rows, self._weight)
        else:
            sums.add_(rows.to(torch.bfloat16) @ self._half)

    def _is_too_much(self, rows: Float[Tensor, "N D"]) -> bool:
        return rows.shape[1] > _WIDE and len(rows) > _MOST_WIDE_ROWS
