"""Decomposable attention: classify a pair of texts, for entailment, paraphrase or answer selection.

    e_ij = F(a_i) . F(b_j)
    attend      B_i = sum over j of softmax_j(e_ij) b_j          the part of b that matches word i of a
                A_j = sum over i of softmax_i(e_ij) a_i          the part of a that matches word j of b
    compare     u_i = G( [a_i; B_i] ),   v_j = G( [b_j; A_j] )
    aggregate   p = softmax( H( [sum of u; sum of v] ) )

F, G and H are MLPs with two layers. An encoder computes the words a and b: only embeddings in Parikh
et al. 2016 (decomposable attention); embeddings with the expected head of each word, by syntactic
attention, in Kim et al. 2017, section 4.4.

Axes: B items of a batch, S words of the first text, R of the second, C classes, V width of a word.
"""

from dataclasses import dataclass
from typing import Literal, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Attended, Attention, Memory
from ..batch_invariant import Linear
from ..networks import AbstractEncoder
from ..specs import check, setting
from ._checks import check_batch, check_sizes, checked_tokens
from ._matcher import AbstractMatcher, AbstractMatcherSpec, Matched, Querying
from .parts._attention_specs import PerQueryAttentionSpec, SoftmaxSpec
from .parts._encoder_specs import EncoderSpec, WordEncoderSpec
from .parts._given_heads_spec import GivenHeadsSpec
from .parts._scorer_specs import DotSpec


@final
class DecomposableAttention(AbstractMatcher):
    """Computes log-probabilities of the classes from two texts, which share all weights.

    Args:
        encoder: Encodes the words of both texts.
        attention: Attention between the texts; its queries and keys are projections of width `hidden_size`.
        vocabulary: Number of tokens.
        num_classes: Number of classes.
        hidden_size: Width of the perceptrons.
        dropout: Dropout probability of the inputs of each perceptron layer.

    Examples:
        >>> matcher = DecomposableAttentionSpec().build(vocabulary=30, num_classes=3)
        >>> matched = matcher(torch.randint(30, (2, 7)), None, torch.randint(30, (2, 5)), None)
        >>> matched.log_probs.shape, matched.first.weights.shape
        (torch.Size([2, 3]), torch.Size([2, 7, 5]))
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        attention: Attention,
        *,
        vocabulary: int,
        num_classes: int,
        hidden_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder, self.attention, self.vocabulary = encoder, attention, vocabulary
        self.project = _perceptron(encoder.value_size, hidden_size, dropout)
        self.compare = _perceptron(2 * encoder.value_size, hidden_size, dropout)
        self.aggregate = _perceptron(2 * hidden_size, hidden_size, dropout)
        self.output = Linear(hidden_size, num_classes)

    @override
    def forward(
        self,
        first: Int[Tensor, "B S"],
        first_mask: Bool[Tensor, "B S"] | None,
        second: Int[Tensor, "B R"],
        second_mask: Bool[Tensor, "B R"] | None,
        heads: tuple[Int[Tensor, "B S"], Int[Tensor, "B R"]] | None = None,
    ) -> Matched:
        """Classify each pair of a first and a second text.

        Args:
            first: Token ids of the first texts.
            first_mask: True on real tokens; None if all tokens are real.
            second: Token ids of the second texts.
            second_mask: True on real tokens; None if all tokens are real.
            heads: Positions of the heads in both texts, counted from 1, for an encoder that reads them.

        Returns:
            The log-probabilities of the classes and the attention in both directions.
        """
        check_batch("DecomposableAttention", first=first.shape[:-1], second=second.shape[:-1])
        of_first, of_second = (None, None) if heads is None else heads
        a = self._words("first", first, first_mask, of_first)
        b = self._words("second", second, second_mask, of_second)
        from_a, from_b = self.project(a.values), self.project(b.values)
        reads_b, reads_a = self._read(from_a, from_b, b), self._read(from_b, from_a, a)
        sums = torch.cat([self._compared(a, reads_b), self._compared(b, reads_a)], -1)
        log_probs = self.output(self.aggregate(sums)).log_softmax(-1)
        return Matched(log_probs, reads_b, reads_a)

    @override
    def self_attentions(
        self, tokens: Int[Tensor, " S"], heads: Int[Tensor, " S"] | None = None
    ) -> tuple[Attended, ...]:
        return self.encoder.self_attentions(_inputs(tokens, heads))

    def _words(
        self, name: str, tokens: Tensor, mask: Tensor | None, heads: Tensor | None
    ) -> Memory:
        with checked_tokens("DecomposableAttention", self.vocabulary, mask, **{name: tokens}):
            return self.encoder(_inputs(tokens, heads), mask)

    def _read(self, queries: Tensor, keys: Tensor, memory: Memory) -> Attended:
        """Attend to the words, scored by their projections F."""
        remembered = self.attention.remember(memory._replace(values=keys))
        return self.attention(queries, remembered._replace(values=memory.values))

    def _compared(self, words: Memory, reads: Attended) -> Tensor:
        """Sum the comparisons over the real words."""
        compared = self.compare(torch.cat([words.values, reads.context], -1))
        if words.mask is not None:
            compared = compared.masked_fill(~words.mask.unsqueeze(-1), 0.0)
        return compared.sum(-2)


def _inputs(tokens: Tensor, heads: Tensor | None) -> Tensor:
    """Return the inputs of the encoder: words, or words with their heads."""
    return tokens if heads is None else torch.stack([tokens, heads], -1)


def _perceptron(input_size: int, size: int, dropout: float) -> nn.Sequential:
    """Build two layers whose first weights preserve the scale of their inputs (He et al. 2015).

    Equal words then have a larger product than other words from the start. With torch's default, the
    product is ten times smaller and attention is uniform; a few thousand pairs are not enough to change it.
    """
    layers = []
    for width in (input_size, size):
        linear = Linear(width, size)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
        layers += [nn.Dropout(dropout), linear, nn.ReLU()]
    return nn.Sequential(*layers)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class DecomposableAttentionSpec(AbstractMatcherSpec):
    """Decomposable attention: the words of each text attend to the other and are compared with its words."""

    kind: Literal["decomposable_attention"] = "decomposable_attention"
    encoder: EncoderSpec | GivenHeadsSpec = setting(
        WordEncoderSpec(dropout=0.0), "encoder of both texts"
    )
    attention: PerQueryAttentionSpec = setting(
        SoftmaxSpec(scorer=DotSpec(scaled=False)), "how words of one text read the other"
    )
    hidden_size: int = setting(200, "width of the perceptrons", at_least=1)
    dropout: float = setting(
        0.0,
        "dropout rate of the layers of the perceptrons; dropout makes two equal words look "
        "different, which only large corpora compensate",
        at_least=0,
        at_most=1,
    )

    @property
    @override
    def attention_kind(self) -> str:
        return self.attention.kind

    @property
    @override
    def self_attention_kinds(self) -> tuple[str, ...]:
        return self.encoder.attention_kinds

    @property
    @override
    def reads_heads(self) -> bool:
        return self.encoder.reads_heads

    @property
    @override
    def querying(self) -> Querying:
        return "first"

    @override
    def build(self, *, vocabulary: int, num_classes: int) -> DecomposableAttention:
        """Build the model with new weights for this vocabulary size and number of classes."""
        check(self)
        check_sizes("DecomposableAttention", vocabulary=vocabulary, num_classes=num_classes)
        return DecomposableAttention(
            self.encoder.build(vocabulary),
            self.attention.build(self.hidden_size, self.hidden_size),
            vocabulary=vocabulary,
            num_classes=num_classes,
            hidden_size=self.hidden_size,
            dropout=self.dropout,
        )
