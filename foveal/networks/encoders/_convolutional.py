"""Convolutional encoder: embeddings, then layers of one-dimensional convolutions over the text.

    x = project( E[token] )
    [a; b] = W [n_{t-d(k-1)/2}; ...; n_t; ...; n_{t+d(k-1)/2}] + bias,   n = norm(x),   k the width of the kernel
    gated    y_t = a_t * sigmoid( b_t )                 plain   y_t = relu( a_t )
    residual x_t = x_t + y_t                            else    x_t = y_t

The distance d between the tokens that a layer reads is 1, or doubles from layer to layer (dilated). Beyond the ends of a
text, n is 0, so the encoding of a text does not depend on its padding. The summary is the mean of the values.

References: Waibel et al. 1989 (time-delay networks); Dauphin et al. 2017 (gates); Gehring et al. 2017 (residual, for
sequence to sequence); Yu and Koltun 2016 (dilation).

Axes: *batch any leading shape, B that shape flattened, T tokens, D width of a value; *tokens is *batch T, or *batch T P.
"""

import math
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad, relu
from typing_extensions import override

from ...attention import Memory
from ...batch_invariant import Linear, sigmoid
from ...errors import ValueRangeError
from ...masking import mask_from_lengths
from .._compaction import arranged, to_front, to_places
from .._dropout import Dropout
from ._encoder import AbstractEncoder, without_padding
from ._spelled_embedding import SpelledEmbedding


@final
class ConvolutionalLayer(nn.Module):
    """One convolution over the positions of a text, with normalization before it and a gate or a ReLU after it."""

    def __init__(
        self, size: int, kernel_size: int, distance: int, *, gated: bool, residual: bool
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        # A product of joined neighbors is batch-invariant; torch's convolutions are not.
        self.window = Linear(kernel_size * size, 2 * size if gated else size)
        self.reach, self.distance = distance * (kernel_size // 2), distance
        self.gated, self.residual = gated, residual

    def forward(
        self, rows: Float[Tensor, "B T D"], padding: Bool[Tensor, "B T 1"] | None
    ) -> Float[Tensor, "B T D"]:
        """Compute the next vector of each position; padding is at the end and counts as 0."""
        normed = self.norm(rows)
        if padding is not None:
            normed = normed.masked_fill(padding, 0.0)
        size = rows.shape[1]
        around = pad(normed, (0, 0, self.reach, self.reach))
        shifts = range(0, 2 * self.reach + 1, self.distance)
        scores = self.window(torch.cat([around[:, start : start + size] for start in shifts], -1))
        if self.gated:
            values, gates = scores.chunk(2, -1)
            found = values * sigmoid(gates)
        else:
            found = relu(scores)
        return rows + found if self.residual else found


@final
class ConvolutionalEncoder(AbstractEncoder):
    """Applies embedding and a stack of convolutions, all positions at once.

    A value depends on the tokens at most `reach` positions away, and on nothing else. Two real tokens with only padding
    between them are neighbors.

    Args:
        embedding: Table of the token vectors.
        size: Width of a value.
        num_layers: Number of convolutions.
        kernel_size: Number of tokens that a convolution reads, an odd number.
        dilated: Double the distance between these tokens from layer to layer.
        gated: Multiply the output of a convolution with gates; otherwise apply a ReLU.
        residual: Add the input of a convolution to its output.
        dropout: Dropout probability of the token vectors and of the output of each layer.

    Raises:
        ValueRangeError: If `kernel_size` is even.

    Examples:
        >>> encoder = ConvolutionalEncoder(nn.Embedding(9, 4), 6, num_layers=2, kernel_size=3)
        >>> encoder(torch.tensor([[1, 2, 3]])).values.shape, encoder.reach
        (torch.Size([1, 3, 6]), 2)
    """

    def __init__(
        self,
        embedding: nn.Embedding | SpelledEmbedding,
        size: int,
        *,
        num_layers: int = 4,
        kernel_size: int = 3,
        dilated: bool = False,
        gated: bool = True,
        residual: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if kernel_size % 2 == 0:
            raise ValueRangeError(
                f"ConvolutionalEncoder: a convolution reads as many tokens before a position as after it, so "
                f"kernel_size must be odd, got {kernel_size}. Set it to {kernel_size + 1}."
            )
        self.embedding = embedding
        self.project = Linear(embedding.embedding_dim, size)
        layers = [
            ConvolutionalLayer(
                size,
                kernel_size,
                2**number if dilated else 1,
                gated=gated,
                residual=residual,
            )
            for number in range(num_layers)
        ]
        self.reach = sum(layer.reach for layer in layers)
        self.layers, self.norm = nn.ModuleList(layers), nn.LayerNorm(size)
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = size

    @override
    def forward(
        self, inputs: Int[Tensor, "*tokens"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        vectors = self.project(self.dropout(self.embedding(without_padding(inputs, mask))))
        batch, places = vectors.shape[:-2], vectors.shape[-2:]
        rows, lengths, moved = vectors.reshape(math.prod(batch), *places), None, None
        if mask is not None:
            lengths, moved = arranged(mask.reshape(rows.shape[:-1]))
            rows = rows if moved is None else to_front(rows, moved)
        padding = None
        if lengths is not None:
            padding = ~mask_from_lengths(lengths, places[0]).unsqueeze(-1)
        for layer in self.layers:
            rows = self.dropout(layer(rows, padding))
        rows = self.norm(rows)
        rows = rows if moved is None else to_places(rows, moved)
        return Memory(rows.reshape(*batch, *places), mask).cleared("ConvolutionalEncoder")
