"""Word vectors concatenated with vectors of spelling features.

    x = [ E[word] ; S[f_1] ; ... ; S[f_F] ]

The features f of a word (prefixes, suffixes, shape) are rows of one hashed table S, so an unknown word
still has a meaningful vector.

Axes: *batch any leading shape, P = 1 + F: the word and its F features, D width of a vector.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ...errors import ValueRangeError
from .._dropout import Dropout


@final
class SpelledEmbedding(nn.Module):
    """Embeds the id of a word and the ids of its spelling features, and concatenates them.

    In training, each feature of each word is dropped with probability `dropout`, which prevents a model
    from relying on one of them.

    Args:
        num_words: Number of rows of the table of words.
        word_size: Width of a word's vector.
        num_features: Number of features of each word.
        num_buckets: Number of rows of the table of features.
        feature_size: Width of a feature's vector.
        dropout: Probability of dropping a feature in training.

    Raises:
        ValueRangeError: If `num_features` is less than 1.

    Examples:
        >>> embedding = SpelledEmbedding(9, 4, num_features=2, num_buckets=50, feature_size=3)
        >>> embedding(torch.tensor([[[8, 49, 0], [1, 7, 7]]])).shape
        torch.Size([1, 2, 10])
    """

    def __init__(
        self,
        num_words: int,
        word_size: int,
        *,
        num_features: int,
        num_buckets: int,
        feature_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if num_features < 1:
            raise ValueRangeError(
                f"SpelledEmbedding: num_features must be at least 1, got {num_features}. "
                f"Use nn.Embedding for words without features."
            )
        self.words = nn.Embedding(num_words, word_size)
        self.features = nn.Embedding(num_buckets, feature_size)
        self.dropout = Dropout(dropout)
        self.embedding_dim = word_size + num_features * feature_size

    @override
    def forward(self, inputs: Int[Tensor, "*batch P"]) -> Float[Tensor, "*batch D"]:
        """Embed words; the id of a word comes first, then the ids of its features."""
        words, features = inputs[..., 0], inputs[..., 1:]
        vectors = self.features(features)
        if self.training and self.dropout.p:
            kept = self.dropout(torch.ones_like(features, dtype=vectors.dtype))
            vectors = vectors * kept.unsqueeze(-1)
        return torch.cat([self.words(words), vectors.flatten(-2)], -1)
