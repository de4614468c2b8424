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
    """Runs one attention on H projections of the queries and the values at once.

    The distribution and the weights have an axis H after the batch: `(*batch, H, Q, S)`.

    Args:
        attention: Attention of one head, for queries of width D/H and values of width V/H.
        num_heads: Number of heads H.
        query_size: Width D of a query, a multiple of `num_heads`.
        value_size: Width V of a value and of the context, a multiple of `num_heads`.

    Raises:
        ShapeError: A size is not a multiple of `num_heads`.
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
        """Project the values for every head once.

        Args:
            memory: Values, and their mask if some positions are padding.

        Returns:
            A memory with a head axis after the batch, and with the keys of every head.

        Raises:
            ShapeError: The mask is not boolean.
        """
        memory = memory.cleared("MultiHead")
        values = self._split(self.value(memory.values))
        mask = None if memory.mask is None else memory.mask.unsqueeze(-2)
        return self.attention.remember(memory._replace(values=values, mask=mask))

    def forward(self, query: Float[Tensor, "*batch Q D"], memory: Memory) -> Attended:
        """Attend with every head and concatenate the contexts.

        Args:
            query: Queries of all heads, before the projection.
            memory: Memory to read, with or without keys.

        Returns:
            The context, and the weights and the distribution with a head axis.
        """
        memory = self.remember(memory) if memory.keys is None else memory
        read = self.attention(self._split(self.query(query)), memory)
        joined = read.context.transpose(-2, -3).flatten(-2)
        return read._replace(context=self.output(joined))

    def _split(self, rows: Float[Tensor, "*batch S D"]) -> Float[Tensor, "*batch H S d"]:
        return rows.unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)


def _divisor_near(size: int, wish: int) -> int:
    return min((d for d in range(1, size + 1) if size % d == 0), key=lambda d: abs(d - wish))
