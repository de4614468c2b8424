"""One layer of a Transformer encoder: self-attention and a feed-forward network, each on normalized inputs.

    x = x + O [head_1; ...; head_H],   head_h = attention_h( Q_h n, K_h n, V_h n ),   n = norm(x)
    x = x + W2 gelu( W1 norm(x) + b1 ) + b2

A head is any self-attention of this library. A softmax over dot products gives the layer of Vaswani et al. 2017
in its pre-norm form (Xiong et al. 2020).

Axes: *batch any leading shape, T tokens, D width of a token's vector, H heads, d = D / H width of a head, _ the heads of one
of the different attentions.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, final, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from typing_extensions import override

from ....attention import Attended, Attention, Memory
from ....attention._fused import attended_to, context_of, remembered
from ....batch_invariant import Linear
from ....errors import ShapeError
from ..._dropout import Dropout
from ._positions import Rotation, rotated


class Projected(NamedTuple):
    """Queries, keys and values of all heads."""

    query: Float[Tensor, "*batch T H d"]
    keys: Float[Tensor, "*batch T H d"]
    values: Float[Tensor, "*batch T H d"]


class _Heads(NamedTuple):
    """The heads that share one attention: h of the H heads."""

    attention: Attention
    query: Float[Tensor, "*batch h T d"]
    memory: Memory  # keys and values (*batch, h, T, d)


@final
class TransformerLayer(nn.Module):
    """A pre-norm layer of self-attention and a feed-forward network with GELU.

    Args:
        model_size: Width D of a token's vector, a multiple of the number of heads.
        attentions: Attention of each head, for queries, keys and values of width d. Heads with the same
            object share its weights and run in one call, one after another in the order of heads.
        feed_forward_size: Width of the hidden layer of the feed-forward network.
        dropout: Dropout probability of the hidden layer, and of both outputs that are added to x.

    Raises:
        ShapeError: If there are no heads, or if `model_size` is not a multiple of their number.

    Examples:
        >>> from foveal.attention import scaled_dot_scorer, softmax_attention, syntactic_attention
        >>> softmax = softmax_attention(4, 4, scaled_dot_scorer(4))
        >>> layer = TransformerLayer(12, [softmax, softmax, syntactic_attention(4, 4, 4)], 48)
        >>> rows = torch.randn(2, 5, 12)
        >>> layer(rows).shape, [heads.weights.shape for heads in layer.attend(rows)]
        (torch.Size([2, 5, 12]), [torch.Size([2, 2, 5, 5]), torch.Size([2, 1, 5, 5])])
    """

    def __init__(
        self,
        model_size: int,
        attentions: Sequence[Attention],
        feed_forward_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.model_size, self.num_heads = model_size, len(attentions)
        self.head_size = head_size("TransformerLayer", model_size, len(attentions))
        shared = Counter(attentions)
        self.attentions, self.head_counts = nn.ModuleList(shared), tuple(shared.values())
        self.attention_norm = nn.LayerNorm(model_size)
        self.project = Linear(model_size, 3 * model_size)
        self.output = Linear(model_size, model_size)
        self.feed_forward_norm = nn.LayerNorm(model_size)
        self.widen = Linear(model_size, feed_forward_size)
        self.narrow = Linear(feed_forward_size, model_size)
        self.dropout = Dropout(dropout)

    @override
    def forward(
        self,
        rows: Float[Tensor, "*batch T D"],
        mask: Bool[Tensor, "*batch T"] | None = None,
        rotation: Rotation | None = None,
    ) -> Float[Tensor, "*batch T D"]:
        """Transform the vector of each token.

        Args:
            rows: Vectors of the tokens; finite on padding.
            mask: True on real tokens; None if all are real.
            rotation: Rotation of queries and keys, for rotary positions; None for none.

        Returns:
            New vectors of the same width. The vectors of padding are arbitrary.
        """
        return self.finished(
            rows, [context_of(*heads) for heads in self._heads(rows, mask, rotation)]
        )

    def attend(
        self,
        rows: Float[Tensor, "*batch T D"],
        mask: Bool[Tensor, "*batch T"] | None = None,
        rotation: Rotation | None = None,
    ) -> tuple[Attended, ...]:
        """Return the attention of the heads, with its weights and its distribution.

        Args:
            rows: Vectors of the tokens, as in `forward`.
            mask: True on real tokens; None if all are real.
            rotation: Rotation of queries and keys, for rotary positions; None for none.

        Returns:
            One result for each different attention, with weights `(*batch, h, T, T)` of its h heads.
        """
        return tuple(attended_to(*heads) for heads in self._heads(rows, mask, rotation))

    def projected(self, rows: Float[Tensor, "*batch T D"]) -> Projected:
        """Normalize the tokens and compute the queries, keys and values of all heads.

        Args:
            rows: Vectors of the tokens, as in `forward`.

        Returns:
            A tensor of each kind, with an axis of heads after the tokens.
        """
        projected = self.project(self.attention_norm(rows)).unflatten(
            -1, (3, self.num_heads, self.head_size)
        )
        return Projected(*projected.unbind(-3))

    def finished(
        self,
        rows: Float[Tensor, "*batch T D"],
        contexts: Sequence[Float[Tensor, "*batch _ T d"]],
    ) -> Float[Tensor, "*batch T D"]:
        """Add the output of the heads, then the output of the feed-forward network.

        Args:
            rows: Vectors of the tokens, as in `forward`.
            contexts: Contexts of the heads of each different attention, in the order of heads.

        Returns:
            New vectors of the same width.
        """
        joined = contexts[0] if len(contexts) == 1 else torch.cat(list(contexts), -3)
        rows = rows + self.dropout(self.output(joined.transpose(-2, -3).flatten(-2)))
        hidden = nn.functional.gelu(self.widen(self.feed_forward_norm(rows)))
        return rows + self.dropout(self.narrow(self.dropout(hidden)))

    def in_order(self) -> Iterator[Attention]:
        """Yield the different attentions, in the order of heads.

        Yields:
            An attention.
        """
        for attention in self.attentions:
            assert isinstance(attention, Attention)
            yield attention

    def _heads(
        self,
        rows: Float[Tensor, "*batch T D"],
        mask: Bool[Tensor, "*batch T"] | None,
        rotation: Rotation | None,
    ) -> Iterator[_Heads]:
        """Project the tokens to queries, keys and values, and divide the heads by their attention."""
        query, keys, values = self.projected(rows)
        if rotation is not None:
            query, keys = rotated(query, rotation), rotated(keys, rotation)
        mask = None if mask is None else mask.unsqueeze(-2)
        parts = (part.transpose(-2, -3) for part in (query, keys, values))
        queries, keys, values = (part.split(self.head_counts, -3) for part in parts)
        for attention, *of_heads in zip(self.in_order(), queries, keys, values, strict=True):
            query, key, value = of_heads
            yield _Heads(attention, query, remembered(attention, key, value, mask))


def head_size(owner: str, model_size: int, num_heads: int) -> int:
    """Return the width of a head; raise `ShapeError` if the heads do not divide the width of the model."""
    if not num_heads or model_size % num_heads:
        raise ShapeError(
            f"{owner}: model_size must be a multiple of the number of heads, got {model_size} and "
            f"{num_heads}. Pass one attention for each head, for example for "
            f"{_divisor_below(model_size, num_heads)} heads."
        )
    return model_size // num_heads


@runtime_checkable
class Sized(Protocol):
    """A layer of a Transformer."""

    model_size: int
    head_size: int


def common_sizes(owner: str, layers: Sequence[Sized]) -> tuple[int, int]:
    """Return the width of a token's vector and of a head, equal in all layers."""
    sizes = {(layer.model_size, layer.head_size) for layer in layers}
    if len(sizes) != 1:
        raise ShapeError(
            f"{owner}: all layers must have one width and one number of heads, got the widths of model "
            f"and head {sorted(sizes)}. Pass at least one layer, and make all of them equal."
        )
    return sizes.pop()


def _divisor_below(size: int, wish: int) -> int:
    return max(number for number in range(1, max(1, wish) + 1) if size % number == 0)
