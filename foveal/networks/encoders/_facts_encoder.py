"""Facts encoder: each fact is a bag of words, weighted by position, plus a vector for its age.

    m_i = sum_j l_j * E[x_ij] + T[age of i]
    l_j[k] = (1 - j/J) - (k/d) (1 - 2 j/J),    j = 1..J words, k = 1..d coordinates

References: Sukhbaatar et al. 2015, section 4.1 (position and temporal encoding); l_j = 1 is a plain bag
of words.

Axes: *batch any leading shape, n facts, w words, d width of an embedding.
"""

from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Layout, Memory
from ...errors import ShapeError
from ._encoder import AbstractEncoder


@final
class FactsEncoder(AbstractEncoder):
    """Encodes each fact as a bag of words.

    In training, each fact counts twice with probability `random_noise`, which makes earlier facts older: the
    model then learns the order of ages and does not memorize them (the paper's random noise). A fact without a
    real word is padding.

    Args:
        embedding: Table of the word vectors.
        positions: Weight the words of a fact by their position.
        max_facts: Largest number of facts; each fact then has a learned vector for its age, where 0 is the
            last fact. None: facts have no age.
        random_noise: Probability that a fact counts twice in training.

    Examples:
        >>> encoder = FactsEncoder(nn.Embedding(9, 4), max_facts=10)
        >>> encoder(torch.zeros(2, 3, 7, dtype=torch.long)).values.shape
        torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        positions: bool = True,
        max_facts: int | None = None,
        random_noise: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.positions, self.random_noise = embedding, positions, random_noise
        self.ages = None if max_facts is None else nn.Embedding(max_facts, embedding.embedding_dim)
        self.value_size = self.summary_size = embedding.embedding_dim

    @override
    def forward(
        self, inputs: Int[Tensor, "*batch n w"], mask: Bool[Tensor, "*batch n w"] | None = None
    ) -> Memory:
        real = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
        words = self.embedding(inputs.masked_fill(~real, 0))
        if self.positions:
            words = words * position_encoding(real, words.shape[-1]).to(words.dtype)
        values = words.masked_fill(~real.unsqueeze(-1), 0.0).sum(-2)
        facts = real.any(-1)
        if self.ages is not None:
            values = values + self._age(facts, self.ages)
        layout = Layout("facts", rows=inputs.shape[-2])
        return Memory(values, None if mask is None else facts, layout=layout)

    def _age(
        self, facts: Bool[Tensor, "*batch n"], ages: nn.Embedding
    ) -> Float[Tensor, "*batch n d"]:
        """Return the vector of each fact's age; 0 on padding."""
        counts = facts.long()
        if self.training and self.random_noise:
            counts = counts + (
                facts & (torch.rand(facts.shape, device=facts.device) < self.random_noise)
            )
        since = counts.flip(-1).cumsum(-1).flip(-1) - counts
        # Padding may exceed the limit; count real facts only if necessary, because it takes time.
        if facts.shape[-1] > ages.num_embeddings and since.max() >= ages.num_embeddings:
            most = int(since.max()) + 1
            raise ShapeError(
                f"FactsEncoder: at most {ages.num_embeddings} facts, got {most}. "
                f"Build it with max_facts={most}, or drop the oldest."
            )
        oldest = ages.num_embeddings - 1  # noise may exceed it
        return ages(since.clamp(max=oldest)).masked_fill(~facts.unsqueeze(-1), 0.0)


def position_encoding(
    mask: Bool[Tensor, "*batch w"], size: int
) -> Float[Tensor, "*batch w {size}"]:
    """Compute the weights l of the words of each fact; only real words count as positions."""
    place = mask.cumsum(-1).unsqueeze(-1)
    share = place / mask.sum(-1).clamp(min=1)[..., None, None]  # j / J
    coordinate = torch.arange(1, size + 1, device=mask.device) / size  # k / d
    return (1 - share) - coordinate * (1 - 2 * share)
