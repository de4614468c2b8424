"""Tagger: one tag for each token.

    score(y) = sum_t unary[t, y_t] + sum_t transitions[y_t, y_{t+1}],   unary = W encoder(tokens) + b

With learned transitions, the model is a conditional random field on top of the encoder. With transitions
of 0, it is a softmax at each token.

References: Lafferty et al. 2001; Huang et al. 2015 (bidirectional LSTM with a CRF, and spelling features).

Axes: B items of a batch, T tokens, F spelling features of a token, K tags.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ..batch_invariant import Linear
from ..distributions import LinearChain
from ..errors import ShapeError, ValueRangeError
from ..networks import AbstractEncoder
from ..networks.encoders._spelled_embedding import SpelledEmbedding
from ..specs import AbstractSpec, check, setting
from ._checks import check_sizes, checked_tokens
from .parts._encoder_specs import EncoderSpec, TextEncoderSpec


@final
class Tagger(nn.Module):
    """Computes a distribution over taggings from tokens.

    Call its `log_prob(tags)`, `argmax()`, `marginals()` or `topk(5)`. Tags on padding are -1 in outputs and
    are ignored in inputs.

    Args:
        encoder: Encodes the tokens, or tokens and their spelling features along an extra axis.
        vocabulary: Number of tokens.
        num_tags: Number of tags.
        crf: Learn transitions between adjacent tags.
        num_features: Number of spelling features of each token; 0 for an encoder that takes only tokens.

    Examples:
        >>> tagger = TaggerSpec().build(vocabulary=30, num_tags=4)
        >>> taggings = tagger(torch.randint(30, (2, 7)))
        >>> taggings.argmax().shape, taggings.log_prob(torch.zeros(2, 7, dtype=torch.long)).shape
        (torch.Size([2, 7]), torch.Size([2]))
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        *,
        vocabulary: int,
        num_tags: int,
        crf: bool = True,
        num_features: int = 0,
    ) -> None:
        super().__init__()
        self.encoder, self.vocabulary, self.num_features = encoder, vocabulary, num_features
        self.unary = Linear(encoder.value_size, num_tags)
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags)) if crf else None

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"] | None = None,
        spelling: Int[Tensor, "B T F"] | None = None,
    ) -> LinearChain:
        """Compute the distribution over taggings of each text.

        Args:
            tokens: Ids of the words.
            mask: True on real tokens; None if all are real.
            spelling: Ids of the spelling features of each word, for a model built with `num_features`.

        Returns:
            A linear chain over the tags of each text.
        """
        inputs = self._checked(tokens, spelling)
        with checked_tokens("Tagger", self.vocabulary, mask, tokens=tokens):
            memory = self.encoder(inputs, mask)
        unary = self.unary(memory.values)
        free = unary.new_zeros(unary.shape[-1], unary.shape[-1])
        return LinearChain(unary, free if self.transitions is None else self.transitions, mask)

    def _checked(self, tokens: Tensor, spelling: Tensor | None) -> Tensor:
        """Combine tokens with their features, if the model uses features."""
        got = "none" if spelling is None else tuple(spelling.shape)
        expected = (*tokens.shape, self.num_features) if self.num_features else "none"
        if got != expected:
            raise ShapeError(
                f"Tagger: spelling must have the shape {expected}, got {got}. Pass the result of "
                f"SpellingSpec.encode to a model with spelling, and nothing to a model without."
            )
        return tokens if spelling is None else torch.cat([tokens.unsqueeze(-1), spelling], -1)


class AbstractTaggerSpec(AbstractSpec):
    """A tagger of words. Derive from it to use a custom model in `TaggingSpec`."""

    __slots__ = ()

    @abstractmethod
    def build(self, *, vocabulary: int, num_tags: int) -> nn.Module:
        """Build the model with new weights.

        The task calls the model with tokens `(B, T)` and a mask `(B, T)`, which is True on real tokens. The
        model returns a `LinearChain` over the tags, with the mask; `ChainCRF` builds one.

        Args:
            vocabulary: Number of words.
            num_tags: Number of tags.

        Returns:
            The model.
        """

    def build_spelled(
        self, *, vocabulary: int, num_tags: int, num_features: int, num_buckets: int
    ) -> nn.Module:
        """Build the model for spelling features.

        The task then also passes the features `(B, T, F)`, which are ids below `num_buckets`. A spec that
        does not override this method supports only words.

        Args:
            vocabulary: Number of words.
            num_tags: Number of tags.
            num_features: Number of spelling features of each word.
            num_buckets: Number of different feature ids.

        Returns:
            The model.

        Raises:
            ValueRangeError: If the spec does not override this method.
        """
        raise ValueRangeError(
            f"{type(self).__name__}: the model reads words only, got spelling features. Set spelling to none, or "
            f"give {type(self).__name__} a method build_spelled."
        )

    def tag_bias(self, model: nn.Module) -> Float[Tensor, " K"] | None:
        """Return the bias of the tag scores, for `tune_recall` of the task.

        Args:
            model: Model from `build` or `build_spelled`.

        Returns:
            A number for each tag; None if the model has no such bias.
        """
        return None


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TaggerSpec(AbstractTaggerSpec):
    """A model that predicts one tag for each token."""

    kind: Literal["tagger"] = "tagger"
    encoder: EncoderSpec = setting(TextEncoderSpec(), "encoder of the text")
    crf: bool = setting(True, "learned transitions between adjacent tags")
    feature_size: int = setting(32, "width of a spelling feature's vector", at_least=1)
    feature_dropout: float = setting(
        0.1, "fraction of spelling features left out in training", at_least=0, at_most=1
    )

    @override
    def build(
        self, *, vocabulary: int, num_tags: int, num_features: int = 0, num_buckets: int = 0
    ) -> Tagger:
        """Build the model with new weights.

        Args:
            vocabulary: Number of words.
            num_tags: Number of tags.
            num_features: Number of spelling features of each word; 0 for a model that uses only words.
            num_buckets: Number of rows in the table of spelling features, if there are any.

        Returns:
            The model, in training mode.
        """
        check(self)
        check_sizes("Tagger", vocabulary=vocabulary, num_tags=num_tags)
        if num_features:
            check_sizes("Tagger", num_features=num_features, num_buckets=num_buckets)
            encoder = self.encoder.build_on(
                lambda word_size: SpelledEmbedding(
                    vocabulary,
                    word_size,
                    num_features=num_features,
                    num_buckets=num_buckets,
                    feature_size=self.feature_size,
                    dropout=self.feature_dropout,
                )
            )
        else:
            encoder = self.encoder.build(vocabulary)
        return Tagger(
            encoder,
            vocabulary=vocabulary,
            num_tags=num_tags,
            crf=self.crf,
            num_features=num_features,
        )

    @override
    def build_spelled(
        self, *, vocabulary: int, num_tags: int, num_features: int, num_buckets: int
    ) -> Tagger:
        return self.build(
            vocabulary=vocabulary,
            num_tags=num_tags,
            num_features=num_features,
            num_buckets=num_buckets,
        )

    @override
    def tag_bias(self, model: nn.Module) -> Float[Tensor, " K"]:
        assert isinstance(model, Tagger)
        return model.unary.bias
