"""A weight matrix prepared for many products, without gradients.

    rows W,   bias + rows W,   sums + rows W

The matrix is transposed in advance, which halves the time of a product with a few rows. In half precision,
products of many rows use bfloat16 with float32 accumulation: up to six times faster on CPUs with support
for it, with three digits of precision. Products of a few rows stay in float32, where they are faster.

The result for a row must not depend on the number of other rows, but libraries have kernels for one row and
for many wide rows that sum in a different order. A single row is therefore duplicated, and the number of
wide rows in one product is limited; see docs/decisions/0012. The C++ kernels, if they are installed, need neither.

Axes: N rows, D width of a row, G width of a product.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ._kernels import Packed, serves

# Measured with MKL 2024.2: for rows up to this width the order of a sum is the same for any number of rows
# from 2, for wider rows from 2 to about 190.
_WIDE, _MOST_WIDE_ROWS = 768, 128
# From this many rows half precision is faster; measured for D = 256 and G = 1,024.
_MANY_ROWS = 48


@final
class Matrix:
    """A matrix with its current values.

    Args:
        weight: Matrix W; later changes of its values have no effect.
        half: Use bfloat16 for products with many rows.

    Examples:
        >>> Matrix(torch.eye(2)).times(torch.ones(1, 2))
        tensor([[1., 1.]])
    """

    def __init__(self, weight: Float[Tensor, "D G"], *, half: bool = False) -> None:
        self.packed = (
            Packed(weight, half=half) if weight.numel() and serves(weight, half=half) else None
        )
        self._weight = weight.detach().contiguous()
        self._half = self._weight.to(torch.bfloat16) if half else None

    def times(self, rows: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        """Compute rows W, as a new tensor."""
        if self.packed is not None:
            return self.packed.times(rows)
        if self._is_too_much(rows):
            return torch.cat([self.times(some) for some in rows.split(_MOST_WIDE_ROWS)])
        if len(rows) == 1:
            return (rows.expand(2, -1) @ self._weight)[:1]
        if self._half is None or len(rows) < _MANY_ROWS:
            return rows @ self._weight
        return (rows.to(torch.bfloat16) @ self._half).to(rows.dtype)

    def plus(self, bias: Float[Tensor, " G"], rows: Float[Tensor, "N D"]) -> Float[Tensor, "N G"]:
        """Compute bias + rows W, as a new tensor."""
        if self.packed is not None:
            return self.packed.times(rows, bias)
        if self._is_too_much(rows):
            return torch.cat([self.plus(bias, some) for some in rows.split(_MOST_WIDE_ROWS)])
        if len(rows) == 1:
            return torch.addmm(bias, rows.expand(2, -1), self._weight)[:1]
        if self._half is None or len(rows) < _MANY_ROWS:
            return torch.addmm(bias, rows, self._weight)
        return (rows.to(torch.bfloat16) @ self._half) + bias

    def add_to(self, sums: Float[Tensor, "N G"], rows: Float[Tensor, "N D"]) -> None:
        """Compute sums + rows W, in place."""
        if self.packed is not None:
            sums.add_(self.packed.times(rows))
        elif self._is_too_much(rows):
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
