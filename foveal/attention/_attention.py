"""Attention: score -> distribute -> read.

    context = E[ read(values, z) ],   z ~ p(z | score(query, keys))

Axes: *batch any leading shape, Q queries, S places, D width of a query, V width of a value.
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from ._memory import Memory
from ._readers import AbstractReader, Selection
from ._scorers import AbstractScorer, potentials_of

# Potentials, and the memory for its mask (*batch, S) and its layout -> a distribution.
Distribute = Callable[[tuple[Tensor, ...], Memory], Selection]


class Attended(NamedTuple):
    """What attention gives back: the context, and where it came from."""

    context: Float[Tensor, "*batch Q V"]
    weights: Float[Tensor, "*batch Q S"]
    distribution: Selection  # ask it for marginals, argmax, entropy


class Attention(nn.Module):
    """score -> distribute -> read, for any number of queries in one call.

    The named attentions of this package are functions that fill the three slots.

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
        """The memory with its keys computed, once for all the queries to come, and with 0 on
        padding, so that what it held reaches neither scores nor context.
        """
        memory = memory.cleared("Attention")
        return memory._replace(keys=self.scorer.remember(memory.values))

    def forward(self, query: Float[Tensor, "*batch Q D"], memory: Memory) -> Attended:
        """Attend with every query at once.

        A memory without keys is remembered here. To ask one memory in several calls, such as the
        steps of a decoder, call `remember` once before them.
        """
        memory = self.remember(memory) if memory.keys is None else memory
        potentials = potentials_of(self.scorer, self._cleared(query, memory), memory.keys)
        distribution = self.distribute(potentials, memory)
        context, weights = self.reader(distribution, memory.values)
        return Attended(context, weights, distribution)

    def _cleared(
        self, query: Float[Tensor, "*batch Q D"], memory: Memory
    ) -> Float[Tensor, "*batch Q D"]:
        """The queries with 0 on padding, where they are the places of the memory themselves. The
        scorer refuses another number of queries than places.
        """
        places, mask = self.scorer.queries_are_places, memory.mask
        if not places or mask is None or query.shape[-2] != mask.shape[-1]:
            return query
        return query.masked_fill(~mask.unsqueeze(-1), 0.0)
