"""Spec of a language model with self-attention."""

import math
from dataclasses import dataclass
from typing import Literal, final

from torch import nn

from ..attention import Attention
from ..errors import ValueRangeError
from ..networks import CausalTransformer, TransformerLayer
from ..specs import check, setting
from ._checks import check_sizes
from ._language_model import LanguageModel
from .parts._attention_specs import AbstractAttentionSpec, PerQueryAttentionSpec, SoftmaxSpec
from .parts._heads_spec import HeadsSpec, check_layers, heads_of_layer
from .parts._scorer_specs import DotSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TransformerLanguageModelSpec:
    """A model that predicts the next token of a text by self-attention to the last tokens."""

    kind: Literal["transformer"] = "transformer"
    model_size: int = setting(
        128, "width of a token's vector, a multiple of the number of heads", at_least=1
    )
    num_layers: int = setting(4, "number of layers", at_least=1)
    num_heads: int = setting(4, "number of heads of a layer", at_least=1)
    feed_forward_size: int | None = setting(
        None, "width of the hidden layer after attention; none: 4 * model_size", at_least=1
    )
    context: int = setting(
        256, "number of tokens that a token reads: itself and those before it", at_least=1
    )
    dropout: float = setting(
        0.1, "fraction of embeddings and outputs set to 0 in training", at_least=0, at_most=1
    )
    attention: PerQueryAttentionSpec = setting(
        SoftmaxSpec(scorer=DotSpec()), "attention of every head that is not in special_heads"
    )
    special_heads: tuple[HeadsSpec, ...] = setting((), "heads with another attention")
    tie_embeddings: bool = setting(False, "the output layer shares the table of the embeddings")

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        """The names of the results of `LanguageModel.self_attentions`."""
        return tuple(
            attention.kind
            for layer in range(1, self.num_layers + 1)
            for attention, _ in self._heads_of(layer)
        )

    def build(self, *, vocabulary: int) -> LanguageModel:
        """Build the model with new weights.

        Args:
            vocabulary: Number of tokens.

        Returns:
            The model, in training mode.

        Raises:
            ValueRangeError: If a head would read later tokens, or if special heads do not fit the layers.
        """
        check(self)
        check_sizes("LanguageModel", vocabulary=vocabulary)
        check_layers("TransformerLanguageModelSpec", self.num_layers, self.special_heads)
        embedding = nn.Embedding(vocabulary, self.model_size)
        nn.init.normal_(embedding.weight, std=1 / math.sqrt(self.model_size))
        decoder = CausalTransformer(
            embedding,
            [self._layer(number) for number in range(1, self.num_layers + 1)],
            context=self.context,
            tie_embeddings=self.tie_embeddings,
            dropout=self.dropout,
        )
        return LanguageModel(decoder)

    def _layer(self, number: int) -> TransformerLayer:
        size = max(1, self.model_size // self.num_heads)
        attentions = list[Attention]()
        for attention, num_heads in self._heads_of(number):
            attentions += [attention.build(size, size)] * num_heads
        hidden_size = self.feed_forward_size or 4 * self.model_size
        return TransformerLayer(self.model_size, attentions, hidden_size, self.dropout)

    def _heads_of(self, layer: int) -> list[tuple[AbstractAttentionSpec, int]]:
        """Return the attentions of a layer and the number of their heads: the special heads, then the rest."""
        special, rest = heads_of_layer(
            "TransformerLanguageModelSpec", layer, self.num_heads, self.special_heads
        )
        heads = list[tuple[AbstractAttentionSpec, int]]()
        for each in special:
            if not isinstance(each.attention, AbstractAttentionSpec):
                raise ValueRangeError(
                    f"TransformerLanguageModelSpec: a token reads only the tokens before it, got special_heads with "
                    f"{each.attention.kind}, which chooses for all words of a text together. Choose for example "
                    f"segment or sparsemax."
                )
            heads.append((each.attention, each.num_heads))
        return [*heads, *([(self.attention, rest)] if rest else [])]
