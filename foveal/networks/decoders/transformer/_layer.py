"""One layer of a Transformer decoder, normalized before each part.

    x = x + causal( norm(x) )
    x = x + cross( norm(x), memory )
    x = x + W2 gelu( W1 norm(x) + b1 ) + b2

Axes: *batch any leading shape, T tokens, D width of a token's vector.
"""

from collections.abc import Sequence
from typing import final

from jaxtyping import Float
from torch import Tensor, nn

from ....attention import Attention
from ....batch_invariant import Linear
from ..._dropout import Dropout
from ...encoders.transformer._layer import head_size
from ._causal_attention import CausalAttention
from ._cross_attention import CrossAttention


@final
class TransformerDecoderLayer(nn.Module):
    """A pre-norm layer of masked self-attention, attention to the memory, and a feed-forward network with GELU.

    A `TransformerDecoder` runs its parts.

    Args:
        model_size: Width D of a token's vector, a multiple of the number of heads.
        value_size: Width of the values of the memory.
        attentions: Attention to the memory of each head, for queries, keys and values of width D / H. Heads with the
            same object share its weights and run in one call, one after another in the order of heads. The masked
            self-attention has the same number of heads, all of them softmax.
        feed_forward_size: Width of the hidden layer of the feed-forward network.
        dropout: Dropout probability of the hidden layer, and of the three outputs that are added to x.

    Raises:
        ShapeError: If there are no heads, or if `model_size` is not a multiple of their number.
    """

    def __init__(
        self,
        model_size: int,
        value_size: int,
        attentions: Sequence[Attention],
        feed_forward_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.model_size, self.num_heads = model_size, len(attentions)
        self.head_size = head_size("TransformerDecoderLayer", model_size, len(attentions))
        self.causal_norm = nn.LayerNorm(model_size)
        self.causal = CausalAttention(model_size, self.num_heads)
        self.cross_norm = nn.LayerNorm(model_size)
        self.cross = CrossAttention(model_size, value_size, attentions)
        self.feed_forward_norm = nn.LayerNorm(model_size)
        self.widen = Linear(model_size, feed_forward_size)
        self.narrow = Linear(feed_forward_size, model_size)
        self.dropout = Dropout(dropout)

    def fed_forward(self, rows: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        """Add the output of the feed-forward network.

        Args:
            rows: Vectors of the tokens.

        Returns:
            New vectors of the same width.
        """
        hidden = nn.functional.gelu(self.widen(self.feed_forward_norm(rows)))
        return rows + self.dropout(self.narrow(self.dropout(hidden)))
