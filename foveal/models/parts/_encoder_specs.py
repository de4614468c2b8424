"""Specs of text encoders: recurrent, embeddings of words, convolutional, recursive, or a Transformer.

The first two can add self-attention, which appends the words that each word attends to; with syntactic attention,
the expected head in a dependency tree. Every head of a Transformer is such a self-attention.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

from torch import nn
from typing_extensions import override

from ...attention import Attention
from ...errors import ValueRangeError
from ...networks import (
    AbstractEncoder,
    SelfAttentiveEncoder,
    TextEncoder,
    TransformerEncoder,
    TransformerLayer,
    WordEncoder,
)
from ...networks.encoders.transformer._positions import Positions
from ...specs import setting
from ._attention_specs import SelfAttentionSpec, SoftmaxSpec
from ._convolutional_spec import ConvolutionalEncoderSpec
from ._encoder_spec import AbstractEncoderSpec, Embed
from ._heads_spec import HeadsSpec, check_layers, heads_of_layer
from ._recurrent_spec import AbstractRecurrentSpec, RecurrentSpec
from ._recursive_specs import RecursiveEncoderSpec
from ._scorer_specs import DotSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TextEncoderSpec(AbstractRecurrentSpec, AbstractEncoderSpec):
    """Embeddings, and a recurrent network over them."""

    kind: Literal["text"] = "text"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    bidirectional: bool = setting(True, "read from both ends")
    learned_state: bool = setting(False, "learn the initial state; false: it is 0")
    self_attention: SelfAttentionSpec | None = setting(
        None, "self-attention after the recurrent network"
    )

    @property
    @override
    def attention_kinds(self) -> tuple[str, ...]:
        return () if self.self_attention is None else (self.self_attention.kind,)

    @override
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        stack = self.stack(self.embedding_size, bidirectional=self.bidirectional)
        embedding = nn.Embedding(vocabulary, self.embedding_size)
        encoder = TextEncoder(embedding, stack, self.dropout, learned_state=self.learned_state)
        return _attending(encoder, self.self_attention, None)

    @override
    def build_on(self, embed: Embed) -> AbstractEncoder:
        """Build the encoder on the vectors from `embed`, of width `embedding_size`."""
        embedding = embed(self.embedding_size)
        stack = self.stack(embedding.embedding_dim, bidirectional=self.bidirectional)
        encoder = TextEncoder(embedding, stack, self.dropout, learned_state=self.learned_state)
        return _attending(encoder, self.self_attention, None)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class WordEncoderSpec(AbstractEncoderSpec):
    """Embeddings without context: the vector of a word depends on other words only through self-attention."""

    kind: Literal["words"] = "words"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    dropout: float = setting(0.2, "dropout rate of the embeddings", at_least=0, at_most=1)
    self_attention: SelfAttentionSpec | None = setting(None, "self-attention over the words")
    states: RecurrentSpec | None = setting(
        None, "network whose states score the self-attention; none: the words themselves do"
    )

    @property
    @override
    def attention_kinds(self) -> tuple[str, ...]:
        return () if self.self_attention is None else (self.self_attention.kind,)

    @override
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        return self.build_on(lambda size: nn.Embedding(vocabulary, size))

    @override
    def build_on(self, embed: Embed) -> AbstractEncoder:
        """Build the encoder on the vectors from `embed`, of width `embedding_size`."""
        if self.states is not None and self.self_attention is None:
            raise ValueRangeError(
                "WordEncoderSpec: states score the self-attention, got states and no "
                "self_attention. Choose one, for example syntactic, or set states to none."
            )
        words = WordEncoder(embed(self.embedding_size), self.dropout)
        return _attending(words, self.self_attention, self.states)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerEncoderSpec(AbstractEncoderSpec):
    """Embeddings, positions and layers of multi-head self-attention, normalized before each part."""

    kind: Literal["transformer"] = "transformer"
    model_size: int = setting(
        128, "width of a token's vector, a multiple of the number of heads", at_least=1
    )
    num_layers: int = setting(2, "number of layers", at_least=1)
    num_heads: int = setting(4, "number of heads of a layer", at_least=1)
    feed_forward_size: int | None = setting(
        None, "width of the hidden layer after attention; none: 4 * model_size", at_least=1
    )
    dropout: float = setting(
        0.1, "fraction of embeddings and outputs set to 0 in training", at_least=0, at_most=1
    )
    positions: Positions = setting("rotary", "how the order of the tokens enters")
    max_positions: int = setting(
        512, "number of learned positions: the length of the longest text", at_least=1
    )
    attention: SelfAttentionSpec = setting(
        SoftmaxSpec(scorer=DotSpec()), "attention of every head that is not in special_heads"
    )
    special_heads: tuple[HeadsSpec, ...] = setting((), "heads with another attention")

    @property
    @override
    def attention_kinds(self) -> tuple[str, ...]:
        return tuple(
            heads.attention.kind
            for layer in range(1, self.num_layers + 1)
            for heads in self._heads_of(layer)
        )

    @override
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        return self.build_on(lambda size: nn.Embedding(vocabulary, size))

    @override
    def build_on(self, embed: Embed) -> AbstractEncoder:
        """Build the encoder on the vectors from `embed`, of width `model_size`."""
        check_layers("TransformerEncoderSpec", self.num_layers, self.special_heads)
        embedding = embed(self.model_size)
        for part in embedding.modules():
            if isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=1 / math.sqrt(embedding.embedding_dim))
        return TransformerEncoder(
            embedding,
            [self._layer(number) for number in range(1, self.num_layers + 1)],
            positions=self.positions,
            max_positions=self.max_positions,
            dropout=self.dropout,
        )

    def _layer(self, number: int) -> TransformerLayer:
        size = max(1, self.model_size // self.num_heads)
        attentions = list[Attention]()
        for heads in self._heads_of(number):
            attentions += [heads.attention.build_self(size, size)] * heads.num_heads
        hidden_size = self.feed_forward_size or 4 * self.model_size
        return TransformerLayer(self.model_size, attentions, hidden_size, self.dropout)

    def _heads_of(self, layer: int) -> tuple[HeadsSpec, ...]:
        """Return all heads of a layer: the special heads, then the rest."""
        special, rest = heads_of_layer(
            "TransformerEncoderSpec", layer, self.num_heads, self.special_heads
        )
        return *special, *([HeadsSpec(attention=self.attention, num_heads=rest)] if rest else [])


EncoderSpec = (
    TextEncoderSpec
    | WordEncoderSpec
    | ConvolutionalEncoderSpec
    | RecursiveEncoderSpec
    | TransformerEncoderSpec
    | AbstractEncoderSpec
)


def _attending(
    encoder: AbstractEncoder, spec: SelfAttentionSpec | None, states: RecurrentSpec | None
) -> AbstractEncoder:
    """Add self-attention to the encoder, if there is any."""
    if spec is None:
        return encoder
    value_size = encoder.value_size
    stack = None if states is None else states.build(value_size)
    key_size = value_size if stack is None else stack.output_size
    return SelfAttentiveEncoder(encoder, spec.build_self(key_size, value_size), stack)
