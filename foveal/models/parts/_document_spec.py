"""Which encoder makes the memory of a document: words make sentences, sentences the document."""

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
    """An encoder over the words of each sentence, a recurrent network over the sentences (Yang et al.
    2016, where the words are read by a recurrent network too).
    """

    kind: Literal["document"] = "document"
    words: EncoderSpec = setting(TextEncoderSpec(), "what reads the words of a sentence")
    pooling: PerQueryAttentionSpec | None = setting(
        SoftmaxSpec(),
        "how words make a sentence; none: the last state is the sentence, or the mean of words that "
        "are not read in order",
    )
    sentences: RecurrentSpec = setting(RecurrentSpec(), "what reads the sentences")

    def build(self, vocabulary: int) -> DocumentEncoder:
        """The encoder of tokens 0 to `vocabulary` - 1."""
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
