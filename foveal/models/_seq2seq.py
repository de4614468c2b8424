"""Sequence to sequence: a text in, a text out. Examples: pronunciation, transliteration, inflection,
translation.

    memory = encoder(source),   p(y | source) = prod over t of p(y_t | y_<t, memory)

Features that describe the requested form ("V;PST") are extra tokens before the source. The encoder reads
them, and each is a position of the memory, so the attention shows which feature caused which letters (Kann
and Schuetze 2016). Adding a bag of features to every letter would make the source shorter but would not
show this.

References: Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015.

With a document encoder, the source has sentences of words. Each word is a position of the memory.

Axes: B items of a batch, S tokens of the source (*places: S, or n sentences of w words), F features, T output tokens.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from typing_extensions import override

from ..attention import Memory
from ..errors import ValueRangeError
from ..networks import AbstractEncoder, DocumentEncoder
from ..networks.decoders._token_decoder import AbstractTokenDecoder
from ..networks.encoders._document_encoder import DocumentWordsEncoder
from ..specs import check, setting
from ._checks import check_axes, check_sizes, checked_tokens
from ._encoder_decoder import AbstractEncoderDecoder, Encode
from .parts._attention_specs import HierarchicalSpec
from .parts._decoder_spec import DecoderSpec
from .parts._document_spec import DocumentEncoderSpec
from .parts._encoder_specs import EncoderSpec, TextEncoderSpec
from .parts._transformer_decoder_spec import AnyDecoderSpec

_UNKNOWN = 1  # the id of the unknown token: foveal.data.Vocabulary


class Source(NamedTuple):
    """The input of a model: tokens, and a mask of the real tokens."""

    tokens: Int[Tensor, "B *places"]
    mask: Bool[Tensor, "B *places"]


@final
class Seq2Seq(AbstractEncoderDecoder):
    """Generates a text from a text.

    `source` is `(B, S)`: tokens 0 to `source_vocabulary` - 1, after the features from `with_features`; or `(B, n, w)`,
    sentences of words, for an encoder of documents.

    Args:
        encoder: Encodes the features and the source as one sequence of tokens.
        decoder: Generates the target from the encoded source.
        source_vocabulary: Number of source tokens.
        num_features: Number of feature tokens, whose ids follow the source tokens; defaults to none.

    Examples:
        >>> model = Seq2SeqSpec().build(source_vocabulary=30, target_vocabulary=40)
        >>> source, tokens = torch.randint(30, (2, 7)), torch.randint(40, (2, 5))
        >>> unrolled = model(source, None, tokens)
        >>> unrolled.log_probs.shape, unrolled.weights.shape
        (torch.Size([2, 5, 40]), torch.Size([2, 5, 7]))
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        decoder: AbstractTokenDecoder,
        *,
        source_vocabulary: int,
        num_features: int = 0,
    ) -> None:
        super().__init__(encoder, decoder)
        self.source_vocabulary, self.num_features = source_vocabulary, num_features

    @override
    def encode_by(
        self,
        encoder: Encode,
        source: Int[Tensor, "B *places"],
        source_mask: Bool[Tensor, "B *places"] | None,
    ) -> Memory:
        documents = isinstance(self.encoder, DocumentWordsEncoder)
        check_axes("Seq2Seq", "source", source, documents=documents)
        size = self.source_vocabulary + self.num_features
        with checked_tokens("Seq2Seq", size, source_mask, source=source):
            memory = encoder(source, source_mask)
        if not self.decoder.copies:
            return memory
        # Source and target share their ids. A feature is no token: copying it gives the unknown token.
        copies = source.masked_fill(source >= self.source_vocabulary, _UNKNOWN)
        if source_mask is not None:
            copies = copies.masked_fill(~source_mask, 0)
        return memory._replace(copies=copies.flatten(1))

    def with_features(
        self,
        features: Int[Tensor, "B F"],
        features_mask: Bool[Tensor, "B F"],
        source: Int[Tensor, "B S"],
        source_mask: Bool[Tensor, "B S"],
    ) -> Source:
        """Prepend the features to the source; their ids follow the source vocabulary.

        Args:
            features: Feature ids from 0 to `num_features` - 1.
            features_mask: True on real features.
            source: Source token ids.
            source_mask: True on real source tokens.

        Returns:
            Tokens and mask of features and source, F + S tokens long.

        Raises:
            ValueRangeError: If the model was built without features.
        """
        if self.num_features == 0:
            raise ValueRangeError(
                "Seq2Seq: the model was built without features, got some. Build it with "
                "num_features=..., or remove them."
            )
        return Source(
            torch.cat([features + self.source_vocabulary, source], -1),
            torch.cat([features_mask, source_mask], -1),
        )


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Seq2SeqSpec:
    """A model that generates a text from a text."""

    kind: Literal["seq2seq"] = "seq2seq"
    encoder: EncoderSpec | DocumentEncoderSpec = setting(TextEncoderSpec(), "encoder of the source")
    decoder: AnyDecoderSpec = setting(DecoderSpec(), "decoder of the target", kind_optional=True)

    @property
    def reads_documents(self) -> bool:
        """Return whether the source has the shape `(B, n, w)`: n sentences of w words."""
        return isinstance(self.encoder, DocumentEncoderSpec)

    def build(
        self, *, source_vocabulary: int, target_vocabulary: int, num_features: int = 0
    ) -> Seq2Seq:
        """Build the model with new weights.

        Args:
            source_vocabulary: Number of source tokens.
            target_vocabulary: Number of target tokens.
            num_features: Number of feature tokens before the source.

        Returns:
            The model, in training mode.

        Raises:
            ValueRangeError: The decoder copies, and source and target differ in their number of tokens, or its
                attention needs another encoder.
        """
        check(self)
        check_sizes(
            "Seq2Seq", source_vocabulary=source_vocabulary, target_vocabulary=target_vocabulary
        )
        if self.decoder.copies and source_vocabulary != target_vocabulary:
            raise ValueRangeError(
                f"Seq2Seq: a decoder that copies needs one vocabulary for source and target, got {source_vocabulary} "
                f"and {target_vocabulary} tokens. Build both from one vocabulary, or set decoder.copy and "
                f"decoder.point to false."
            )
        if isinstance(self.decoder.attention, HierarchicalSpec) and not self.reads_documents:
            raise ValueRangeError(
                f"Seq2Seq: hierarchical attention needs an encoder of documents, got encoder {self.encoder.kind}. "
                f"Set encoder to document, or decoder.attention to softmax."
            )
        encoder = self.encoder.build(source_vocabulary + num_features)
        if isinstance(encoder, DocumentEncoder):
            encoder = DocumentWordsEncoder(encoder)
        decoder = self.decoder.build(target_vocabulary, encoder.value_size, encoder.summary_size)
        return Seq2Seq(
            encoder, decoder, source_vocabulary=source_vocabulary, num_features=num_features
        )
