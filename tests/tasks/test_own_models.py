"""User-defined models in built-in tasks: the limits of optional parts."""

from dataclasses import dataclass
from typing import Literal, final

import pytest
from torch import Tensor, nn

from foveal.data import Example, SpellingSpec
from foveal.distributions import LinearChain
from foveal.errors import SpecError, ValueRangeError
from foveal.models import AbstractTaggerSpec, Seq2SeqSpec
from foveal.networks import ChainCRF
from foveal.specs import AbstractSpec, check, setting
from foveal.tasks import TaggingSpec

SENTENCES = [Example("see Bela now", "O B-X O"), Example("see it", "O O")]


class Lookup(nn.Module):
    """A vector for each word, followed by a CRF."""

    def __init__(self, vocabulary: int, num_tags: int) -> None:
        super().__init__()
        self.words, self.crf = nn.Embedding(vocabulary, 4), ChainCRF(4, num_tags)

    def forward(self, tokens: Tensor, mask: Tensor) -> LinearChain:
        return self.crf(self.words(tokens), mask)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LookupSpec(AbstractTaggerSpec):
    """A spec with neither `build_spelled` nor `tag_bias`."""

    kind: Literal["lookup"] = "lookup"

    def build(self, *, vocabulary: int, num_tags: int) -> Lookup:
        return Lookup(vocabulary, num_tags)


def test_a_tagger_of_words_refuses_spelling_features() -> None:
    spec = TaggingSpec(model=LookupSpec(), spelling=SpellingSpec())
    with pytest.raises(
        ValueRangeError, match="LookupSpec: the model reads words only, got spelling"
    ):
        spec.build_from(SENTENCES)


def test_a_tagger_without_a_bias_refuses_to_tune_recall() -> None:
    with pytest.raises(SpecError, match=r"tune_recall .*got the model LookupSpec.*tag_bias"):
        TaggingSpec(model=LookupSpec(), tune_recall=True).build_from(SENTENCES)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class WriterSpec(AbstractSpec):
    """A whole model that writes."""

    kind: Literal["writer"] = "writer"


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class HolderSpec:
    """A spec with a field like `TransductionSpec.model`."""

    model: Seq2SeqSpec = setting(Seq2SeqSpec(), "what reads and writes")


def test_a_closed_field_says_so() -> None:
    spec = HolderSpec(model=WriterSpec())  # pyright: ignore[reportArgumentType]
    with pytest.raises(SpecError, match=r"^model: expected .*, got a WriterSpec.*no other class"):
        check(spec)
