"""The self-attention of one layer to earlier tokens, with any attention in each head.

Axes: *batch any leading shape, T new tokens, P all tokens that are read, H heads, h heads of one attention, d width of a
head.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple, final

from jaxtyping import Bool, Float
from torch import Tensor

from ....attention import Attended, Attention, Memory
from ....attention._fused import attended_to, context_of, remembered
from ...encoders.transformer._layer import TransformerLayer
from ...encoders.transformer._positions import Rotation, rotated


class _Heads(NamedTuple):
    """The heads that share one attention, and the tokens that each query may read."""

    attention: Attention
    query: Float[Tensor, "*batch h T d"]
    memory: Memory  # keys and values (*batch, h, P, d)
    allowed: Bool[Tensor, "*#batch 1 T P"]


@final
class CausalReading:
    """The queries, keys and values of a layer.

    Training needs only the contexts, so most training steps never compute the weights.

    Args:
        layer: Layer whose heads read.
        query: Queries of the new tokens.
        keys: Keys of all tokens, the new tokens last.
        values: Values of all tokens.
        turn: Rotation of all tokens, for the heads whose scores depend on rotated tokens only by their distance.
        allowed: True where a new token may read a token.
    """

    def __init__(
        self,
        layer: TransformerLayer,
        query: Float[Tensor, "*batch T H d"],
        keys: Float[Tensor, "*batch P H d"],
        values: Float[Tensor, "*batch P H d"],
        turn: Rotation,
        allowed: Bool[Tensor, "*#batch T P"],
    ) -> None:
        self._layer, self._batch = layer, query.shape[:-3]
        num_old = keys.shape[-3] - query.shape[-3]
        turn_of_query = Rotation(*(part[..., num_old:, :, :] for part in turn))
        self._plain = self._split(query, keys)
        self._rotated = self._split(rotated(query, turn_of_query), rotated(keys, turn))
        (self._values,) = self._split(values)
        # The fused kernel takes only a mask with axes of texts and heads.
        self._allowed = allowed.reshape(-1, 1, *allowed.shape[-2:])

    def contexts(self) -> list[Float[Tensor, "*batch h T d"]]:
        """Return the contexts of the heads of each different attention.

        Returns:
            One tensor for each different attention, in the order of heads.
        """
        return [context_of(*heads).unflatten(0, self._batch) for heads in self._heads()]

    def attended(self) -> tuple[Attended, ...]:
        """Return the attention of the heads, with its weights and its distribution.

        Returns:
            One result for each different attention, with weights `(*batch, h, T, P)` of its h heads. The distribution
            has one batch axis.
        """
        found = (attended_to(*heads) for heads in self._heads())
        return tuple(
            each._replace(
                context=each.context.unflatten(0, self._batch),
                weights=each.weights.unflatten(0, self._batch),
            )
            for each in found
        )

    def _heads(self) -> Iterator[_Heads]:
        for number, attention in enumerate(self._layer.in_order()):
            is_turned = attention.scorer.is_rotation_invariant
            query, keys = self._rotated if is_turned else self._plain
            memory = remembered(attention, keys[number], self._values[number], None)
            yield _Heads(attention, query[number], memory, self._allowed)

    def _split(self, *parts: Tensor) -> list[tuple[Tensor, ...]]:
        """Divide the heads by their attention. All batch axes become one: the fused kernel takes no other number."""
        return [
            part.reshape(math.prod(self._batch), *part.shape[-3:])
            .transpose(-2, -3)
            .split(self._layer.head_counts, -3)
            for part in parts
        ]
