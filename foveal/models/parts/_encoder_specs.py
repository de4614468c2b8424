"""Specs of text encoders: recurrent, or embeddings of words.

Both can add self-attention, which appends the words that each word attends to; with syntactic attention,
the expected head in a dependency tree.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from torch import nn
from typing_extensions import override

from ...errors import ValueRangeError
from ...networks import AbstractEncoder, SelfAttentiveEncoder, TextEncoder, WordEncoder
from ...networks.encoders._spelled_embedding import SpelledEmbedding
from ...specs import AbstractSpec, setting
from ._attention_specs import SelfAttentionSpec
from ._recurrent_spec import AbstractRecurrentSpec, RecurrentSpec

# Builds the table of word vectors of a given width.
Embed: TypeAlias = Callable[[int], nn.Embedding | SpelledEmbedding]


class AbstractEncoderSpec(AbstractSpec):
    """A text encoder. Derive from it to use a custom encoder in every task on texts."""

    __slots__ = ()

    @abstractmethod
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder.

        Args:
            vocabulary: Number of tokens; their ids are 0 to `vocabulary` - 1.

        Returns:
            An encoder with new weights.
        """

    @property
    def attention_kind(self) -> str | None:
        """Return the name of the self-attention in traces; None if there is none."""
        return None

    def build_on(self, embed: Embed) -> AbstractEncoder:
        """Build the encoder on a given table of word vectors.

        Taggers with spelling features call it. An encoder that does not override it takes only tokens.

        Args:
            embed: Builds the table of word vectors for a width.

        Returns:
            An encoder with this table and otherwise new weights.

        Raises:
            ValueRangeError: If the encoder does not override this method.
        """
        raise ValueRangeError(
            f"{type(self).__name__}: the encoder reads tokens only, got spelling features. Set spelling "
            f"to none, or give {type(self).__name__} a method build_on."
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TextEncoderSpec(AbstractRecurrentSpec, AbstractEncoderSpec):
    """Embeddings, and a recurrent network over them."""

    kind: Literal["text"] = "text"
    embedding_size: int = setting(128, "width of a token's vector", at_least=1)
    bidirectional: bool = setting(True, "read from both ends")
    self_attention: SelfAttentionSpec | None = setting(
        None, "self-attention after the recurrent network"
    )

    @property
    @override
    def attention_kind(self) -> str | None:
        return None if self.self_attention is None else self.self_attention.kind

    @override
    def build(self, vocabulary: int) -> AbstractEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        stack = self.stack(self.embedding_size, bidirectional=self.bidirectional)
        embedding = nn.Embedding(vocabulary, self.embedding_size)
        encoder = TextEncoder(embedding, stack, self.dropout)
        return _attending(encoder, self.self_attention, None)

    @override
    def build_on(self, embed: Embed) -> AbstractEncoder:
        """Build the encoder on the vectors from `embed`, of width `embedding_size`."""
        embedding = embed(self.embedding_size)
        stack = self.stack(embedding.embedding_dim, bidirectional=self.bidirectional)
        encoder = TextEncoder(embedding, stack, self.dropout)
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
    def attention_kind(self) -> str | None:
        return None if self.self_attention is None else self.self_attention.kind

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


EncoderSpec = TextEncoderSpec | WordEncoderSpec | AbstractEncoderSpec


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
