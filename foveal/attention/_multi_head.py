"""Multi-head attention: the heads are an extra batch axis of one attention.

    head_h = attention( P_h q, C_h values ),   context = O [head_1; ...; head_H]

Reference: Vaswani et al. 2017, section 3.2.2, with any attention instead of scaled dot products.

Axes: *batch any leading shape, H heads, Q queries, S positions, D width of a query, V of a value.
"""

from typing import final

from jaxtyping import Float
from torch import Tensor, nn

from ..batch_invariant import Linear
from ..errors import ShapeError
from ._attention import Attended, Attention
from ._memory import Memory


@final
class MultiHead(nn.Module):
    """Runs `attention`, built for queries of width D/H and values of width V/H, on H projections at once.

    The distribution and the weights have an axis H after the batch: `(*batch, H, Q, S)`.
    """

    def __init__(
        self, attention: Attention, *, num_heads: int, query_size: int, value_size: int
    ) -> None:
        super().__init__()
        for name, size in (("query", query_size), ("value", value_size)):
            if size % num_heads:
                raise ShapeError(
                    f"MultiHead: {name}_size must be a multiple of num_heads, got {size} and "
                    f"{num_heads}. Pass num_heads={_divisor_near(size, num_heads)}."
                )
        self.attention, self.num_heads = attention, num_heads
        self.query = Linear(query_size, query_size, bias=False)
        self.value = Linear(value_size, value_size, bias=False)
        self.output = Linear(value_size, value_size, bias=False)

    def remember(self, memory: Memory) -> Memory:
        """Project the values for every head once."""
        memory = memory.cleared("MultiHead")
        values = self._split(self.value(memory.values))
        mask = None if memory.mask is None else memory.mask.unsqueeze(-2)
        return self.attention.remember(memory._replace(values=values, mask=mask))

    def forward(self, query: Float[Tensor, "*batch Q D"], memory: Memory) -> Attended:
        """Attend with every head and concatenate the contexts."""
        memory = self.remember(memory) if memory.keys is None else memory
        read = self.attention(self._split(self.query(query)), memory)
        joined = read.context.transpose(-2, -3).flatten(-2)
        return read._replace(context=self.output(joined))

    def _split(self, rows: Float[Tensor, "*batch S D"]) -> Float[Tensor, "*batch H S d"]:
        return rows.unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)


def _divisor_near(size: int, wish: int) -> int:
    return min((d for d in range(1, size + 1) if size % d == 0), key=lambda d: abs(d - wish))
