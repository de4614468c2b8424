"""Parts for the tasks of foveal."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from foveal.attention import AbstractScorer, Attention, ExpectedValue, Memory, per_query
from foveal.data import AbstractTokenizerSpec
from foveal.distributions import LogPartitionDistribution
from foveal.metrics import AbstractMetricSpec, Statistics
from foveal.models import (
    AbstractAttentionSpec,
    AbstractEncoderSpec,
    AbstractScorerSpec,
    AdditiveSpec,
)
from foveal.networks import AbstractEncoder
from foveal.specs import setting


class CosineScorer(AbstractScorer):
    """score = scale * cos(q, k), for queries of the size of the values."""

    def __init__(self, query_size: int, value_size: int, scale: float) -> None:
        super().__init__()
        self.project = nn.Linear(query_size, value_size, bias=False)
        self.scale = scale

    def remember(self, values: Tensor) -> Tensor:
        """Prepare the values once."""
        return normalize(values, dim=-1).mT

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Score every position."""
        return self.scale * normalize(self.project(query), dim=-1) @ keys


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CosineSpec(AbstractScorerSpec):
    """Score by the cosine of query and key."""

    kind: Literal["cosine"] = "cosine"
    scale: float = setting(5.0, "largest score", above=0)

    def build(self, query_size: int, value_size: int) -> CosineScorer:
        """Build the scorer."""
        return CosineScorer(query_size, value_size, self.scale)


@dataclass(frozen=True, eq=False)
class Peaks(LogPartitionDistribution):
    """Sets of positions without two neighbors."""

    scores: Tensor  # (..., T)
    mask: Tensor | None = None  # (..., T), True on real positions
    axes: ClassVar = {"scores": "T", "mask": "T"}

    def log_partition_of(
        self, logsumexp: Callable[[Tensor, int], Tensor], scores: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Sum over the sets by a recursion over positions: each position is in the set or not."""
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        off = torch.zeros_like(scores[:, 0])
        on = torch.full_like(off, -torch.inf)
        for t in range(scores.shape[1]):
            off, on = logsumexp(torch.stack([off, on], -1), -1), off + scores[:, t]
        return logsumexp(torch.stack([off, on], -1), -1)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PeaksSpec(AbstractAttentionSpec):
    """Read positions without two neighbors."""

    kind: Literal["peaks"] = "peaks"

    @property
    def is_exclusive(self) -> bool:
        """Each position is read or not."""
        return False

    def build(self, query_size: int, value_size: int) -> Attention:
        """Build the attention."""
        scorer = AdditiveSpec().build(query_size, value_size)
        return Attention(scorer=scorer, distribute=per_query(Peaks), reader=ExpectedValue())


class MeanEncoder(AbstractEncoder):
    """The vector of each word, concatenated with the mean over all words."""

    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.value_size, self.summary_size = 2 * size, size

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        """Encode tokens."""
        words = self.embedding(inputs if mask is None else inputs.masked_fill(~mask, 0))
        weights = (
            torch.ones_like(inputs, dtype=words.dtype) if mask is None else mask.to(words.dtype)
        )
        total = (words * weights.unsqueeze(-1)).sum(-2)
        mean = total / weights.sum(-1, keepdim=True).clamp(min=1)
        values = torch.cat([words, mean.unsqueeze(-2).expand_as(words)], -1)
        return Memory(values, mask, summary=mean)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class MeanEncoderSpec(AbstractEncoderSpec):
    """An encoder without a recurrent network."""

    kind: Literal["mean"] = "mean"
    size: int = setting(8, "width of a word", at_least=1)

    def build(self, vocabulary: int) -> MeanEncoder:
        """Build the encoder."""
        return MeanEncoder(vocabulary, self.size)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SyllableSpec(AbstractTokenizerSpec):
    """Split a text into syllables: consonants with the vowel after them."""

    kind: Literal["syllables"] = "syllables"
    vowels: str = setting("aeiou", "letters that end a symbol")

    def encode(self, text: str) -> list[str]:
        """Split a text into tokens."""
        return re.findall(f"[^{self.vowels}]*[{self.vowels}]|[^{self.vowels}]+", text)

    def decode(self, tokens: Sequence[str]) -> str:
        """Join tokens."""
        return "".join(tokens)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PrefixMatchSpec(AbstractMetricSpec):
    """Accuracy of the first letter of the outputs."""

    kind: Literal["prefix_match"] = "prefix_match"

    def measure(self, references: Sequence[str], outputs: Sequence[str]) -> Statistics:
        """Count the outputs with the right first letter."""
        pairs = zip(references, outputs, strict=True)
        rows = np.array([[float(a[:1] == b[:1]), 1.0] for a, b in pairs])
        return Statistics(
            name="prefix_match",
            rows=rows,
            score=lambda sums: 100 * sums[:, 0] / sums[:, 1],
            signature="first letters that are right",
            higher_is_better=True,
        )
