"""From a vector to the log-probabilities of the next token.

    log p = log_softmax( W x + b )

Tied, W is the table of the token embeddings (Press and Wolf 2017; Inan et al. 2017).

Axes: *batch any leading shape, D width of the vector, W tokens of the vocabulary.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from ..errors import ShapeError


@final
class TokenOutput(nn.Module):
    """The output layer of a decoder. Tied, it has no table of its own, so that a saved model has
    the table once.
    """

    def __init__(self, size: int, embedding: nn.Embedding, *, tied: bool = False) -> None:
        super().__init__()
        if tied and size != embedding.embedding_dim:
            raise ShapeError(
                f"TokenOutput: tied embeddings need vectors of width {embedding.embedding_dim}, "
                f"got {size}. Make the embeddings as wide as the vector before the output, "
                f"or pass tied=False."
            )
        bound = size**-0.5
        table = torch.empty(embedding.num_embeddings, size).uniform_(-bound, bound)
        self.weight = None if tied else nn.Parameter(table)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))

    def forward(
        self, vectors: Float[Tensor, "*batch D"], embedding: nn.Embedding
    ) -> Float[Tensor, "*batch W"]:
        """Log-probabilities of every token."""
        weight = embedding.weight if self.weight is None else self.weight
        return linear(vectors, weight, self.bias).log_softmax(-1)
