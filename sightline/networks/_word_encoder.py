"""Words by themselves: an embedding for each, and no more.

    values = E[token]

Reference: Parikh et al. 2016 and Kim et al. 2017, section 4.1, whose attention reads embeddings.

Axes: *batch any leading shape, T tokens, V width of a value.
"""

from typing import final

from jaxtyping import Bool, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Memory
from ._dropout import Dropout
from ._encoders import AbstractEncoder


@final
class WordEncoder(AbstractEncoder):
    """Embedding and dropout. A word knows neither its neighbours nor its place; the summary is the
    mean of the words.

    >>> import torch
    >>> WordEncoder(nn.Embedding(9, 4))(torch.tensor([[1, 2, 3]])).values.shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, embedding: nn.Embedding, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = embedding.embedding_dim

    @override
    def forward(
        self, inputs: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        # Padding may hold any number, one that is no token among them.
        tokens = inputs if mask is None else inputs.masked_fill(~mask, 0)
        values = self.dropout(self.embedding(tokens))
        if mask is not None:
            values = values.masked_fill(~mask.unsqueeze(-1), 0.0)
        return Memory(values, mask)
