"""A tagger: one tag for each token.

    score(y) = sum_t unary[t, y_t] + sum_t transitions[y_t, y_{t+1}],   unary = W encoder(tokens) + b

With learned transitions this is a conditional random field on top of the encoder. With transitions of
0 it is a softmax at each token, which is the same chain.

References: Lafferty et al. 2001; Huang et al. 2015 (bidirectional LSTM with a CRF, and spelling features).

Axes: B items of a batch, T tokens, F spelling features of a token, K tags.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from ..batch_invariant import Linear
from ..distributions import LinearChain
from ..errors import ShapeError
from ..networks import AbstractEncoder
from ..networks.encoders._spelled_embedding import SpelledEmbedding
from ..specs import check, setting
from ._checks import check_mask, tokens_below
from .parts._encoder_specs import EncoderSpec, TextEncoderSpec


@final
class Tagger(nn.Module):
    """Tokens in, a distribution over taggings out: ask it for `log_prob(tags)`, `argmax()`,
    `marginals()`, `topk(5)`. Tags on padding are -1 in outputs and are ignored in inputs.

    >>> tagger = TaggerSpec(vocabulary=30, num_tags=4).build()
    >>> taggings = tagger(torch.randint(30, (2, 7)))
    >>> taggings.argmax().shape, taggings.log_prob(torch.zeros(2, 7, dtype=torch.long)).shape
    (torch.Size([2, 7]), torch.Size([2]))

    Args:
        encoder: reads the tokens, or tokens and their spelling features along one more axis.
        vocabulary: number of tokens.
        num_tags: number of tags.
        crf: learn transitions between adjacent tags.
        spelling: how the numbers of spelling features are bounded; None for an encoder of tokens only.
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        *,
        vocabulary: int,
        num_tags: int,
        crf: bool = True,
        spelling: "SpelledSpec | None" = None,
    ) -> None:
        super().__init__()
        self.encoder, self.vocabulary, self.spelling = encoder, vocabulary, spelling
        self.unary = Linear(encoder.value_size, num_tags)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags)) if crf else None

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
        spelling: Int[Tensor, "B T F"] | None = None,
    ) -> LinearChain:
        """The distribution over taggings of each text.

        Args:
            tokens: numbers of the words.
            mask: True on real tokens; None where all are.
            spelling: numbers of the spelling features of each word, for a model that was built with
                `spelling`.
        """
        check_mask("Tagger", "tokens", tokens, mask)
        inputs = self._checked(tokens, spelling)
        with tokens_below("Tagger", self.vocabulary, mask, tokens=tokens):
            memory = self.encoder(inputs, mask)
        unary = self.unary(memory.values)
        free = unary.new_zeros(unary.shape[-1], unary.shape[-1])
        return LinearChain(unary, free if self.transitions is None else self.transitions, mask)

    def _checked(self, tokens: Tensor, spelling: Tensor | None) -> Tensor:
        """Tokens with their features, if the model reads features."""
        number = 0 if self.spelling is None else self.spelling.num_features
        got = "none" if spelling is None else tuple(spelling.shape)
        expected = (*tokens.shape, number) if number else "none"
        if got != expected:
            raise ShapeError(
                f"Tagger: spelling must have the shape {expected}, got {got}. Pass what "
                f"SpellingSpec.encode gives for a model with spelling, and nothing for one without."
            )
        return tokens if spelling is None else torch.cat([tokens.unsqueeze(-1), spelling], -1)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class SpelledSpec:
    """Vectors of a word's spelling features (prefixes, suffixes, shape)."""

    kind: Literal["spelled"] = "spelled"
    num_features: int = setting(about="features of each word", at_least=1)
    num_buckets: int = setting(about="rows of the table of features", at_least=1)
    feature_size: int = setting(32, "width of a feature's vector", at_least=1)
    dropout: float = setting(
        0.1, "fraction of the features left out in training", at_least=0, at_most=1
    )

    def build(self, vocabulary: int, word_size: int) -> SpelledEmbedding:
        """The table of words 0 to `vocabulary` - 1 and of their features."""
        return SpelledEmbedding(
            vocabulary,
            word_size,
            num_features=self.num_features,
            num_buckets=self.num_buckets,
            feature_size=self.feature_size,
            dropout=self.dropout,
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TaggerSpec:
    """One tag for each token."""

    kind: Literal["tagger"] = "tagger"
    vocabulary: int = setting(about="number of tokens that are read", at_least=1)
    num_tags: int = setting(about="number of tags", at_least=1)
    encoder: EncoderSpec = setting(TextEncoderSpec(), "what reads the text")
    crf: bool = setting(True, "learned transitions between adjacent tags")
    spelling: SpelledSpec | None = setting(
        None, "spelling features that are read next to each token; none: tokens only"
    )

    def build(self) -> Tagger:
        """The model, with fresh weights."""
        check(self)
        spelling = self.spelling
        if spelling is None:
            encoder = self.encoder.build(self.vocabulary)
        else:
            encoder = self.encoder.build_on(lambda size: spelling.build(self.vocabulary, size))
        return Tagger(
            encoder,
            vocabulary=self.vocabulary,
            num_tags=self.num_tags,
            crf=self.crf,
            spelling=spelling,
        )
