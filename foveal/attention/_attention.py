"""Attention: score -> distribute -> read.

    context = E[ read(values, z) ],   z ~ p(z | score(query, keys))

Axes: *batch any leading shape, Q queries, S positions, D width of a query, V width of a value.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from ._memory import Memory
from ._readers import AbstractReader, Selection
from ._scorers import AbstractScorer, potentials_of

# Maps potentials and a memory, which has the mask (*batch, S) and the layout, to a distribution.
Distribute = Callable[[tuple[Tensor, ...], Memory], Selection]


class Attended(NamedTuple):
    """The output of an attention: the context, its weights and the distribution."""

    context: Float[Tensor, "*batch Q V"]
    weights: Float[Tensor, "*batch Q S"]
    distribution: Selection  # ask it for marginals, argmax, entropy


class Attention(nn.Module):
    """Attention in three steps, score -> distribute -> read, for any number of queries in one call.

    The named attentions of this package are functions that fill the three slots.

    Args:
        scorer: Computes the potentials from the queries and the keys of the memory.
        distribute: Maps the potentials and the memory to a distribution over selections, for example
            `per_query(Categorical)`.
        reader: Computes the context and the weights from the distribution and the values.

    Examples:
        >>> import torch
        >>> from foveal.attention import Memory, softmax_attention
        >>> attention = softmax_attention(query_size=4, value_size=6)
        >>> memory = Memory(torch.randn(2, 5, 6))
        >>> attention(torch.randn(2, 3, 4), memory).context.shape
        torch.Size([2, 3, 6])
    """

    def __init__(
        self, *, scorer: AbstractScorer, distribute: Distribute, reader: AbstractReader
    ) -> None:
        super().__init__()
        self.scorer, self.distribute, self.reader = scorer, distribute, reader

    def remember(self, memory: Memory) -> Memory:
        """Compute the keys once for all later queries, and set padding to 0.

        Padding then affects neither scores nor context.

        Args:
            memory: Values, and their mask if some positions are padding.

        Returns:
            The memory with its keys.

        Raises:
            ShapeError: The mask is not boolean, or the values do not have the width that the scorer expects.
        """
        memory = memory.cleared("Attention")
        return memory._replace(keys=self.scorer.remember(memory.values))

    def forward(self, query: Float[Tensor, "*batch Q D"], memory: Memory) -> Attended:
        """Attend with every query at once.

        If the memory has no keys, this call computes them. To query one memory in several calls, such as
        the steps of a decoder, call `remember` once before them.

        Args:
            query: Queries; structured attentions may expect one query for each position or step.
            memory: Memory to read, with or without keys.

        Returns:
            The context and the weights of every query, and the distribution.

        Raises:
            ShapeError: The queries or the values do not have the width that the scorer expects.
        """
        memory = self.remember(memory) if memory.keys is None else memory
        potentials = potentials_of(self.scorer, self._cleared(query, memory), memory.keys)
        distribution = self.distribute(potentials, memory)
        context, weights = self.reader(distribution, memory.values)
        return Attended(context, weights, distribution)

    def _cleared(
        self, query: Float[Tensor, "*batch Q D"], memory: Memory
    ) -> Float[Tensor, "*batch Q D"]:
        """Set padded queries to 0 if the queries are the positions of the memory.

        The scorer raises an error if the number of queries differs from the number of positions.
        """
        places, mask = self.scorer.queries_are_places, memory.mask
        if not places or mask is None or query.shape[-2] != mask.shape[-1]:
            return query
        return query.masked_fill(~mask.unsqueeze(-1), 0.0)
