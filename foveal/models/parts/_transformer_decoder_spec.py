"""Spec of a Transformer decoder."""

import math
from dataclasses import dataclass
from typing import Literal, final

from torch import nn
from typing_extensions import override

from ...attention import Attention
from ...errors import ValueRangeError
from ...networks import TransformerDecoder, TransformerDecoderLayer
from ...networks.encoders.transformer._positions import Positions
from ...specs import setting
from ._attention_specs import AbstractAttentionSpec, PerQueryAttentionSpec, SoftmaxSpec
from ._decoder_spec import END, POINT, AbstractDecoderSpec, DecoderSpec, check_point
from ._heads_spec import HeadsSpec, check_layers, heads_of_layer
from ._scorer_specs import DotSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerDecoderSpec(AbstractDecoderSpec):
    """Embeddings, positions and layers of masked self-attention and attention to the memory."""

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
        512, "number of learned positions: the length of the longest output", at_least=1
    )
    attention: PerQueryAttentionSpec = setting(
        SoftmaxSpec(scorer=DotSpec()),
        "how every head that is not in special_heads reads the memory; self-attention is softmax",
    )
    special_heads: tuple[HeadsSpec, ...] = setting(
        (), "heads that read the memory with another attention"
    )
    tie_embeddings: bool = setting(False, "the output layer shares the table of the embeddings")
    copy: bool = setting(
        False, "copy tokens of the source, unseen ones too (pointer-generator, See et al. 2017)"
    )
    point: bool = setting(False, POINT)

    @property
    @override
    def copies(self) -> bool:
        return self.copy or self.point

    @property
    @override
    def points(self) -> bool:
        return self.point

    @property
    @override
    def attention_kind(self) -> str:
        """Name of the attentions of the last layer, whose weights a trace has."""
        kinds = {attention.kind for attention, _ in self._heads_of(self.num_layers)}
        return "+".join(sorted(kinds))

    @property
    @override
    def is_exclusive(self) -> bool:
        """Whether the weights of the last layer, averaged over its heads, sum to 1."""
        return all(attention.is_exclusive for attention, _ in self._heads_of(self.num_layers))

    @override
    def build(self, vocabulary: int, value_size: int, summary_size: int) -> TransformerDecoder:
        """Build the decoder for tokens 0 to `vocabulary` - 1 and a memory of these widths."""
        check_layers("TransformerDecoderSpec", self.num_layers, self.special_heads)
        check_point(
            "TransformerDecoderSpec", self.point, copy=self.copy, tie_embeddings=self.tie_embeddings
        )
        if self.copies and not self.is_exclusive:
            option = "point" if self.point else "copy"
            raise ValueRangeError(
                f"TransformerDecoderSpec: {option} needs attention weights that sum to 1, got the attention "
                f"{self.attention_kind} in the last layer, whose weights do not. Choose softmax, sparsemax or local "
                f"attention there, or set {option} to false."
            )
        embedding = nn.Embedding(vocabulary, self.model_size)
        nn.init.normal_(embedding.weight, std=1 / math.sqrt(self.model_size))
        return TransformerDecoder(
            embedding,
            [self._layer(number, value_size) for number in range(1, self.num_layers + 1)],
            positions=self.positions,
            max_positions=self.max_positions,
            tie_embeddings=self.tie_embeddings,
            copy=self.copy,
            point_end=END if self.point else None,
            dropout=self.dropout,
        )

    def _layer(self, number: int, value_size: int) -> TransformerDecoderLayer:
        size = max(1, self.model_size // self.num_heads)
        attentions = list[Attention]()
        for attention, num_heads in self._heads_of(number):
            attentions += [attention.build(size, size)] * num_heads
        hidden_size = self.feed_forward_size or 4 * self.model_size
        return TransformerDecoderLayer(
            self.model_size, value_size, attentions, hidden_size, self.dropout
        )

    def _heads_of(self, layer: int) -> list[tuple[AbstractAttentionSpec, int]]:
        """Return the attentions of a layer and the number of their heads: the special heads, then the rest."""
        special, rest = heads_of_layer(
            "TransformerDecoderSpec", layer, self.num_heads, self.special_heads
        )
        heads = list[tuple[AbstractAttentionSpec, int]]()
        for each in special:
            if not isinstance(each.attention, AbstractAttentionSpec):
                raise ValueRangeError(
                    f"TransformerDecoderSpec: special_heads read the memory, got {each.attention.kind}, in which the "
                    f"words of one text read each other. Choose for example segment, or give these heads to the encoder."
                )
            heads.append((each.attention, each.num_heads))
        return [*heads, *([(self.attention, rest)] if rest else [])]


# The decoders of the package, and any other that derives from `AbstractDecoderSpec`.
AnyDecoderSpec = DecoderSpec | TransformerDecoderSpec | AbstractDecoderSpec
