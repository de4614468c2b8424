"""Word encoder: only an embedding for each word.

    values = E[token]

Reference: Parikh et al. 2016 and Kim et al. 2017, section 4.1, whose attention reads embeddings.

Axes: *batch any leading shape, T tokens, V width of a value; *tokens is *batch T, or *batch T P.
"""

from typing import final

from jaxtyping import Bool, Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Memory
from .._dropout import Dropout
from ._encoder import AbstractEncoder, without_padding
from ._spelled_embedding import SpelledEmbedding


@final
class WordEncoder(AbstractEncoder):
    """Applies embedding and dropout.

    The value of a word depends neither on its neighbors nor on its position; the summary is the mean of
    the words.

    Args:
        embedding: Table of the word vectors.
        dropout: Dropout probability of the word vectors.

    Examples:
        >>> import torch
        >>> WordEncoder(nn.Embedding(9, 4))(torch.tensor([[1, 2, 3]])).values.shape
        torch.Size([1, 3, 4])
    """

    def __init__(self, embedding: nn.Embedding | SpelledEmbedding, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = embedding.embedding_dim

    @override
    def forward(
        self, inputs: Int[Tensor, "*tokens"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        tokens = without_padding(inputs, mask)
        values = self.dropout(self.embedding(tokens))
        if mask is not None:
            values = values.masked_fill(~mask.unsqueeze(-1), 0.0)
        return Memory(values, mask)
