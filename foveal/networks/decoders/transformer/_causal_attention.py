"""Masked self-attention: each token reads itself and the tokens before it.

    head_h = softmax( Q_h x (K_h x_<=t)^T / sqrt(d) ) V_h x_<=t,   output = O [head_1; ...; head_H]

Keys and values of a token do not depend on later tokens, so a search computes them once for each token and keeps them.

Reference: Vaswani et al. 2017, section 3.2.3.

Axes: *batch any leading shape, T new tokens, P all tokens so far, D width of a token's vector, H heads, d width of a
head.
"""

from typing import NamedTuple, final

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ....batch_invariant import Linear
from ...encoders.transformer._positions import Rotation, rotated


class Projected(NamedTuple):
    """Queries, keys and values of the heads."""

    query: Float[Tensor, "*batch H T d"]
    keys: Float[Tensor, "*batch H T d"]
    values: Float[Tensor, "*batch H T d"]


@final
class CausalAttention(nn.Module):
    """Multi-head self-attention in which no token reads a later one.

    Args:
        model_size: Width D of a token's vector, a multiple of `num_heads`.
        num_heads: Number of heads H.
    """

    def __init__(self, model_size: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.project = Linear(model_size, 3 * model_size)
        self.output = Linear(model_size, model_size)

    def projected(
        self, rows: Float[Tensor, "*batch T D"], rotation: Rotation | None = None
    ) -> Projected:
        """Compute queries, keys and values of new tokens.

        Args:
            rows: Vectors of the tokens.
            rotation: Rotation of queries and keys, for rotary positions; None for none.

        Returns:
            A tensor of each kind, with an axis of heads before the tokens.
        """
        parts = self.project(rows).unflatten(-1, (3, self.num_heads, -1))
        query, keys, values = parts.unbind(-3)
        if rotation is not None:
            query, keys = rotated(query, rotation), rotated(keys, rotation)
        return Projected(*(part.transpose(-2, -3) for part in (query, keys, values)))

    def forward(
        self,
        query: Float[Tensor, "*batch H T d"],
        keys: Float[Tensor, "*batch H P d"],
        values: Float[Tensor, "*batch H P d"],
        allowed: Bool[Tensor, "*#batch T P"] | None = None,
    ) -> Float[Tensor, "*batch T D"]:
        """Read the tokens so far.

        Args:
            query: Queries of the new tokens.
            keys: Keys of all tokens, the new ones last.
            values: Values of all tokens.
            allowed: True where a token may read another. None: each new token reads itself and all tokens before
                it; there must then be one new token, or no others.

        Returns:
            The output of the heads for each new token.
        """
        batch, num_new = query.shape[:-3], query.shape[-2]
        # One batch axis: the fused kernel takes no other number.
        query, keys, values = (part.flatten(0, -4) for part in (query, keys, values))
        if allowed is not None:
            allowed = allowed.expand(*batch, *allowed.shape[-2:]).flatten(0, -3).unsqueeze(1)
        context = scaled_dot_product_attention(
            query, keys, values, attn_mask=allowed, is_causal=allowed is None and num_new > 1
        )
        return self.output(context.transpose(1, 2).flatten(-2)).unflatten(0, batch)
