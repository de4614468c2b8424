"""Whole models for tasks of foveal: a bag of words, and a tagger without context."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn

from foveal.distributions import LinearChain
from foveal.models import AbstractClassifierSpec, AbstractTaggerSpec, Classified
from foveal.networks import ChainCRF
from foveal.specs import setting


class Bag(nn.Module):
    """The sum of the scores of the words."""

    def __init__(self, vocabulary: int, num_classes: int) -> None:
        super().__init__()
        self.scores = nn.Embedding(vocabulary, num_classes)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Classified:
        """Return log-probabilities of the classes."""
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        found = self.scores(tokens.masked_fill(~mask, 0)) * mask.unsqueeze(-1)
        return Classified(found.sum(1).log_softmax(-1), attended=None)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BagSpec(AbstractClassifierSpec):
    """A bag of words."""

    kind: Literal["bag"] = "bag"

    def build(self, *, vocabulary: int, num_classes: int) -> Bag:
        """Build the model."""
        return Bag(vocabulary, num_classes)


class Lookup(nn.Module):
    """A vector for each word, followed by a CRF."""

    def __init__(self, vocabulary: int, num_tags: int, size: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, size)
        self.crf = ChainCRF(size, num_tags)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> LinearChain:
        """Return the distribution over taggings."""
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        return self.crf(self.words(tokens), mask)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LookupSpec(AbstractTaggerSpec):
    """A tagger without an encoder."""

    kind: Literal["lookup"] = "lookup"
    size: int = setting(8, "width of a word's vector", at_least=1)

    def build(self, *, vocabulary: int, num_tags: int) -> Lookup:
        """Build the model."""
        return Lookup(vocabulary, num_tags, self.size)
