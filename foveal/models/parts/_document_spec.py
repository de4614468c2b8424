"""Spec of document encoders, which combine words into sentences and sentences into the document."""

from dataclasses import dataclass
from typing import Literal, final

from ...attention import AttentionPooling
from ...errors import ValueRangeError
from ...networks import DocumentEncoder, SelfAttentiveEncoder
from ...specs import setting
from ._attention_specs import PerQueryAttentionSpec, SoftmaxSpec
from ._encoder_specs import EncoderSpec, TextEncoderSpec
from ._recurrent_spec import RecurrentSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentEncoderSpec:
    """An encoder over the words of each sentence, then a recurrent network over the sentences.

    In Yang et al. 2016, the encoder of words is a recurrent network too.
    """

    kind: Literal["document"] = "document"
    words: EncoderSpec = setting(TextEncoderSpec(), "encoder of the words of a sentence")
    pooling: PerQueryAttentionSpec | None = setting(
        SoftmaxSpec(),
        "how words make a sentence; none: the last state is the sentence, or the mean of words that "
        "are not read in order",
    )
    sentences: RecurrentSpec = setting(RecurrentSpec(), "encoder of the sentences")

    def build(self, vocabulary: int) -> DocumentEncoder:
        """Build the encoder.

        Args:
            vocabulary: Number of tokens; their ids are 0 to `vocabulary` - 1.

        Returns:
            An encoder with new weights.

        Raises:
            ValueRangeError: If the encoder of the words has self-attention.
        """
        words = self.words.build(vocabulary)
        if isinstance(words, SelfAttentiveEncoder):
            raise ValueRangeError(
                "DocumentEncoderSpec: the words of a sentence are pooled, got self_attention for "
                "them. Set words.self_attention to none."
            )
        size, pooling = words.value_size, None
        if self.pooling is not None:
            pooling = AttentionPooling(self.pooling.build(size, size), query_size=size)
        return DocumentEncoder(words, self.sentences.build(size), pooling)
