"""Attention of a Transformer decoder to the memory, with any attention in each head.

    head_h = attention_h( Q_h x, K_h memory, V_h memory ),   output = O [head_1; ...; head_H]

Reference: Vaswani et al. 2017, section 3.2.3.

Axes: *batch any leading shape, Q queries, S positions, D width of a query, V of a value of the memory, H heads, d
width of a head, _ the heads of one of the different attentions.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....attention import Attended, Attention, Memory
from ....attention._fused import attended_to, context_of, remembered
from ....batch_invariant import Linear

# The memory as each different attention of a layer reads it, with an axis of heads after the batch.
HeadMemories = tuple[Memory, ...]


@final
class CrossAttention(nn.Module):
    """Multi-head attention from the tokens of the output to the memory.

    Args:
        model_size: Width D of a token's vector, a multiple of the number of heads.
        value_size: Width V of the values of the memory.
        attentions: Attention of each head. Heads with the same object share its weights and run in one call.
    """

    def __init__(self, model_size: int, value_size: int, attentions: Sequence[Attention]) -> None:
        super().__init__()
        self.num_heads = len(attentions)
        shared = Counter(attentions)
        self.attentions, self.head_counts = nn.ModuleList(shared), tuple(shared.values())
        self.query = Linear(model_size, model_size)
        self.project = Linear(value_size, 2 * model_size)
        self.output = Linear(model_size, model_size)

    def remember(self, memory: Memory) -> HeadMemories:
        """Compute keys and values of the heads once, for all queries.

        Args:
            memory: Values with padding set to 0, and their mask.

        Returns:
            A memory for each different attention.
        """
        parts = self.project(memory.values).unflatten(-1, (2, self.num_heads, -1)).unbind(-3)
        keys, values = (part.transpose(-2, -3).split(self.head_counts, -3) for part in parts)
        mask = None if memory.mask is None else memory.mask.unsqueeze(-2)
        return tuple(
            remembered(attention, key, value, mask, memory.layout)
            for attention, key, value in zip(self.in_order(), keys, values, strict=True)
        )

    def in_order(self) -> Iterator[Attention]:
        """Yield the different attentions, in the order of heads.

        Yields:
            An attention.
        """
        for attention in self.attentions:
            assert isinstance(attention, Attention)
            yield attention

    def queries(self, rows: Float[Tensor, "*batch Q D"]) -> list[Float[Tensor, "*batch _ Q d"]]:
        """Project the queries, divided by attention.

        Args:
            rows: Normalized vectors of the tokens.

        Returns:
            The queries of the heads of each different attention.
        """
        heads = self.query(rows).unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)
        return list(heads.split(self.head_counts, -3))

    def forward(
        self, queries: Sequence[Float[Tensor, "*batch _ Q d"]], memories: HeadMemories
    ) -> Float[Tensor, "*batch Q D"]:
        """Read the memory.

        Args:
            queries: Queries of the heads, from `queries`.
            memories: The memory, from `remember`.

        Returns:
            The output of the heads for each query.
        """
        triples = zip(self.in_order(), queries, memories, strict=True)
        return self.joined([context_of(*each) for each in triples])

    def attend(
        self, queries: Sequence[Float[Tensor, "*batch _ Q d"]], memories: HeadMemories
    ) -> tuple[Attended, ...]:
        """Return the attention of the heads, with its weights and its distribution.

        Args:
            queries: Queries of the heads, from `queries`.
            memories: The memory, from `remember`.

        Returns:
            One result for each different attention, with weights `(*batch, h, Q, S)` of its h heads.
        """
        triples = zip(self.in_order(), queries, memories, strict=True)
        return tuple(attended_to(*each) for each in triples)

    def forced(
        self, weights: Float[Tensor, "*batch Q S"], memories: HeadMemories
    ) -> Float[Tensor, "*batch Q D"]:
        """Read the memory with given weights, which all heads share.

        Args:
            weights: Weights that replace the weights of the attention.
            memories: The memory, from `remember`.

        Returns:
            The output of the heads for each query.
        """
        return self.joined([weights.unsqueeze(-3) @ each.values for each in memories])

    def joined(
        self, contexts: Sequence[Float[Tensor, "*batch _ Q d"]]
    ) -> Float[Tensor, "*batch Q D"]:
        """Concatenate the contexts of all heads and project them.

        Args:
            contexts: Contexts of the heads of each different attention.

        Returns:
            The output of the heads for each query.
        """
        context = contexts[0] if len(contexts) == 1 else torch.cat(list(contexts), -3)
        return self.output(context.transpose(-2, -3).flatten(-2))


@final
class CrossReading:
    """The attention of a decoder to the memory, computed when it is asked for.

    Training with the fused kernel needs no weights, so most training steps never compute them.

    Args:
        layer: Attention of the last layer.
        queries: Queries of its heads.
        memories: The memory as its heads read it.
    """

    def __init__(
        self,
        layer: CrossAttention,
        queries: Sequence[Float[Tensor, "*batch _ Q d"]],
        memories: HeadMemories,
    ) -> None:
        self._layer, self._queries, self._memories = layer, queries, memories

    @cached_property
    def heads(self) -> tuple[Attended, ...]:
        """The attention of the heads of the last layer, one result for each different attention."""
        return self._layer.attend(self._queries, self._memories)

    @property
    def weights(self) -> Float[Tensor, "*batch Q S"]:
        """The weights of the last layer, averaged over its heads."""
        return mean_weights(self.heads)


def mean_weights(heads: Sequence[Attended]) -> Float[Tensor, "*batch Q S"]:
    """Return the weights averaged over all heads."""
    weights = [each.weights for each in heads]
    return (weights[0] if len(weights) == 1 else torch.cat(weights, -3)).mean(-3)
