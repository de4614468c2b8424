"""Spec of an encoder whose words read their given heads."""

from dataclasses import dataclass
from typing import Literal, final

from typing_extensions import override

from ...networks import GivenHeadsEncoder
from ...specs import setting
from ._encoder_spec import AbstractEncoderSpec
from ._encoder_specs import EncoderSpec, WordEncoderSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class GivenHeadsSpec(AbstractEncoderSpec):
    """An encoder that adds the head of each word, which a parser found. Each token of a text is `word:head`."""

    kind: Literal["given_heads"] = "given_heads"
    encoder: EncoderSpec = setting(WordEncoderSpec(dropout=0.0), "encoder of the words")

    @property
    @override
    def attention_kinds(self) -> tuple[str, ...]:
        return *self.encoder.attention_kinds, self.kind

    @property
    @override
    def reads_heads(self) -> bool:
        return True

    @override
    def build(self, vocabulary: int) -> GivenHeadsEncoder:
        """Build the encoder for tokens 0 to `vocabulary` - 1."""
        return GivenHeadsEncoder(self.encoder.build(vocabulary))
