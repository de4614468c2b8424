"""The base class of text encoder specs."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from torch import nn

from ...errors import ValueRangeError
from ...networks import AbstractEncoder
from ...networks.encoders._spelled_embedding import SpelledEmbedding
from ...specs import AbstractSpec

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
    def attention_kinds(self) -> tuple[str, ...]:
        """Return the name of each self-attention in traces, in the order of `AbstractEncoder.self_attentions`."""
        return ()

    @property
    def reads_heads(self) -> bool:
        """Return whether the inputs of the encoder are pairs of a word and the position of its head."""
        return False

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
