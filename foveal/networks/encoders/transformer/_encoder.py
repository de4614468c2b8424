"""Transformer encoder: embeddings, positions, and layers of multi-head self-attention.

    x_t = sqrt(D) E[token_t],   values = norm( layer_L( ... layer_1(x + positions) ) )

The heads of a layer may be softmax, segment, syntactic or any other self-attention. The summary is the mean of the
values.

References: Vaswani et al. 2017; Xiong et al. 2020 (normalization before each part).

Axes: *batch any leading shape, T tokens, D width of a value; *tokens is *batch T, or *batch T P.
"""

import math
from collections.abc import Sequence
from typing import final

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ....attention import Attended, Memory
from ....batch_invariant import Linear
from ..._dropout import Dropout
from .._encoder import AbstractEncoder, without_padding
from .._spelled_embedding import SpelledEmbedding
from ._layer import TransformerLayer, common_sizes
from ._positions import (
    Positions,
    Rotation,
    check_head_size,
    learned_positions,
    placed,
    rotation,
    token_positions,
)


@final
class TransformerEncoder(AbstractEncoder):
    """Applies embedding, positions and layers of self-attention.

    A token's position is its index among the real tokens of its text, so padding anywhere changes nothing.

    Args:
        embedding: Table of the token vectors. If it is not as wide as the layers, a linear layer follows it.
        layers: Layers of self-attention, all of one width D and one number of heads.
        positions: How the order of the tokens enters: `rotary`, `learned` or `sinusoidal`.
        max_positions: Number of learned positions, the length of the longest text; ignored otherwise.
        dropout: Dropout probability of the sum of token vectors and positions.

    Raises:
        ShapeError: If there are no layers, if their sizes differ, or if rotary positions meet heads of odd width.

    Examples:
        >>> import torch
        >>> from foveal.attention import scaled_dot_scorer, softmax_attention
        >>> softmax = softmax_attention(4, 4, scaled_dot_scorer(4))
        >>> layers = [TransformerLayer(8, [softmax, softmax], feed_forward_size=32)]
        >>> encoder = TransformerEncoder(nn.Embedding(9, 8), layers)
        >>> tokens = torch.tensor([[1, 2, 3]])
        >>> encoder(tokens).values.shape, encoder.self_attentions(tokens)[0].weights.shape
        (torch.Size([1, 3, 8]), torch.Size([1, 2, 3, 3]))
    """

    def __init__(
        self,
        embedding: nn.Embedding | SpelledEmbedding,
        layers: Sequence[TransformerLayer],
        *,
        positions: Positions = "rotary",
        max_positions: int = 512,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        size, head_size = common_sizes("TransformerEncoder", layers)
        check_head_size("TransformerEncoder", positions, head_size)
        self.embedding, self.layers = embedding, nn.ModuleList(layers)
        self.project = (
            None if embedding.embedding_dim == size else Linear(embedding.embedding_dim, size)
        )
        self.learned = learned_positions(positions, max_positions, size)
        self.positions: Positions = positions
        self.head_size = head_size
        self.norm = nn.LayerNorm(size)
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = size

    @override
    def forward(
        self, inputs: Int[Tensor, "*tokens"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        vectors = self._embedded(inputs, mask)
        batch, places = vectors.shape[:-2], vectors.shape[-2:]
        # One batch axis: the fused kernel of attention takes no other number.
        rows = vectors.reshape(math.prod(batch), *places)
        real = None if mask is None else mask.reshape(rows.shape[:-1])
        rows, turn = self._placed(rows, real)
        for layer in self.layers:
            rows = layer(rows, real, turn)
        values = self.norm(rows).reshape(*batch, *places)
        return Memory(values, mask).cleared("TransformerEncoder")

    @override
    def self_attentions(
        self, inputs: Int[Tensor, "*tokens"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> tuple[Attended, ...]:
        """Return the attention of the heads of every layer, lowest layer first.

        Args:
            inputs: Token ids.
            mask: True on real tokens; None if all are real.

        Returns:
            One result for each different attention of a layer, with weights `(*batch, h, T, T)` of its h heads.
        """
        rows, turn = self._placed(self._embedded(inputs, mask), mask)
        found = list[Attended]()
        for layer in self.layers:
            assert isinstance(layer, TransformerLayer)
            found += layer.attend(rows, mask, turn)
            rows = layer(rows, mask, turn)
        return tuple(found)

    def _embedded(
        self, inputs: Int[Tensor, "*tokens"], mask: Bool[Tensor, "*batch T"] | None
    ) -> Float[Tensor, "*batch T D"]:
        vectors = self.embedding(without_padding(inputs, mask))
        return vectors if self.project is None else self.project(vectors)

    def _placed(
        self, vectors: Float[Tensor, "*batch T D"], mask: Bool[Tensor, "*batch T"] | None
    ) -> tuple[Float[Tensor, "*batch T D"], Rotation | None]:
        """Add the positions to the vectors, and return the rotation if the positions are rotary."""
        index = token_positions(vectors.shape[-2], mask, vectors.device)
        vectors = placed(vectors, index, self.positions, self.learned)
        turn = rotation(index, self.head_size) if self.positions == "rotary" else None
        return self.dropout(vectors), turn
