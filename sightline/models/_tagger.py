"""A tagger: one tag for each token.

    score(y) = sum_t unary[t, y_t] + sum_t transitions[y_t, y_{t+1}],   unary = W encoder(tokens) + b

With learned transitions this is a conditional random field on top of the encoder; with transitions
of 0 it is a softmax at each token, which the same chain holds.

References: Lafferty et al. 2001; Huang et al. 2015 (bidirectional LSTM with a CRF).

Axes: B items of a batch, T tokens, K tags.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from ..distributions import LinearChain
from ..networks import AbstractEncoder
from ..specs import check, setting
from ..steady import Linear
from ._checks import check_mask, tokens_below
from ._encoder_specs import EncoderSpec, TextEncoderSpec


@final
class Tagger(nn.Module):
    """Tokens in, a distribution over taggings out: ask it for `log_prob(tags)`, `argmax()`,
    `marginals()`, `topk(5)`. Tags on padding are -1 in what it gives and nothing in what it takes.

    >>> tagger = TaggerSpec(vocabulary=30, num_tags=4).build()
    >>> taggings = tagger(torch.randint(30, (2, 7)))
    >>> taggings.argmax().shape, taggings.log_prob(torch.zeros(2, 7, dtype=torch.long)).shape
    (torch.Size([2, 7]), torch.Size([2]))
    """

    def __init__(
        self, encoder: AbstractEncoder, *, vocabulary: int, num_tags: int, crf: bool = True
    ) -> None:
        super().__init__()
        self.encoder, self.vocabulary = encoder, vocabulary
        self.unary = Linear(encoder.value_size, num_tags)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags)) if crf else None

    def forward(
        self, tokens: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"] | None = None
    ) -> LinearChain:
        """The distribution over taggings of each text."""
        check_mask("Tagger", "tokens", tokens, mask)
        with tokens_below("Tagger", self.vocabulary, mask, tokens=tokens):
            memory = self.encoder(tokens, mask)
        unary = self.unary(memory.values)
        free = unary.new_zeros(unary.shape[-1], unary.shape[-1])
        return LinearChain(unary, free if self.transitions is None else self.transitions, mask)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TaggerSpec:
    """One tag for each token."""

    kind: Literal["tagger"] = "tagger"
    vocabulary: int = setting(about="number of tokens that are read", at_least=1)
    num_tags: int = setting(about="number of tags", at_least=1)
    encoder: EncoderSpec = setting(TextEncoderSpec(), "what reads the text")
    crf: bool = setting(True, "learned transitions between neighbouring tags")

    def build(self) -> Tagger:
        """The model, with fresh weights."""
        check(self)
        encoder = self.encoder.build(self.vocabulary)
        return Tagger(encoder, vocabulary=self.vocabulary, num_tags=self.num_tags, crf=self.crf)
