"""Pair classification: one label for two texts, whose words attend to each other.

    loss = - log p(label | first text, second text)  (smoothed)

For example, does a sentence follow from another, do two questions ask the same, does a text answer a question?

References: Parikh et al. 2016; Kim et al. 2017, section 4.4.

Axes: B pairs, S tokens of the first text, R tokens of the second.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot
from typing_extensions import override

from ..attention import Attended, AttentionTrace, trace_of
from ..data import Encoded, Example, TextPair, TokenizerSpec, WhitespaceSpec
from ..data._batches import PairBatch, collate_text_pairs, move
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, numbered, trained
from ..data.vocabularies._vocabulary import UNKNOWN
from ..distributions import ProjectiveTree, SpanningTree
from ..metrics import AbstractMetricSpec
from ..models import (
    DecomposableAttention,
    DecomposableAttentionSpec,
)
from ..specs import setting
from .base._forced import Forced, forced_labels, looked
from .base._labeling import AbstractLabeling, Labeled, label_of
from .base._losses import word_dropout
from .base._prediction import Loss, PredictionSpec
from .base._size_classes import settled
from .base._task_spec import Inputs
from .base._text_spec import AbstractTextSpec
from .explaining._erasing import with_each_unknown
from .explaining._explanation import Explanation, Way


@final
class PairClassification(AbstractLabeling[DecomposableAttention, "PairClassificationSpec"]):
    """Classification of pairs of texts."""

    @override
    def encode(self, example: Example) -> Encoded:
        first, second = self._numbers(example)
        return Encoded(first, second=second, target=[self._label(example)])

    @override
    def collate(self, examples: Sequence[Encoded]) -> PairBatch:
        return collate_text_pairs(examples)

    @override
    def loss(self, batch: PairBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over pairs."""
        batch = move(batch, self.device)
        first, second = batch.first, batch.second
        if self.model.training:
            first = word_dropout(first, batch.first_mask, self.spec.word_dropout)
            second = word_dropout(second, batch.second_mask, self.spec.word_dropout)
        matched = self.model(first, batch.first_mask, second, batch.second_mask)
        return self._loss(matched.log_probs, batch.labels, self.spec.label_smoothing)

    @override
    def symbols(self, example: Example) -> list[str]:
        """Return the tokens of both texts."""
        return [symbol for text in self.texts(example) for symbol in text]

    def texts(self, example: Example) -> tuple[list[str], list[str]]:
        """Return the tokens of both texts.

        Args:
            example: Example whose source is a pair of texts.

        Returns:
            The tokens of the first text and of the second.
        """
        pair, encode = example.input_as(TextPair), self.spec.source.encode
        return encode(pair.first), encode(pair.second)

    def self_attentions(self, text: str) -> tuple[AttentionTrace, ...]:
        """Return the self-attentions of the encoder for a text.

        Args:
            text: Text to encode.

        Returns:
            The attention weights of each token, averaged over the heads that share an attention, with the most
            probable tree of a single head over trees; empty if the encoder has no self-attention.
        """
        kinds = self.spec.model.encoder.attention_kinds
        symbols = self.spec.source.encode(text)
        numbers = torch.tensor(numbered(self.vocabularies.source, symbols), device=self.device)
        words = symbols or [""]
        with self.answering():
            found = self.model.encoder.self_attentions(numbers) if kinds else ()
            return tuple(
                trace_of(
                    attended._replace(weights=_by_head(attended).mean(0)),
                    kind=kind,
                    sources=words,
                    targets=words,
                    best=_best_heads(attended),
                )
                for kind, attended in zip(kinds, found, strict=True)
            )

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain all labels, the attention between the two texts, and the self-attention of each text."""
        found, explanation = self._explained(example)
        assert found.trace is not None
        pair = example.input_as(TextPair)
        own = [self.self_attentions(text) for text in (pair.first, pair.second)]
        return replace(
            explanation,
            sources=(*found.trace.targets, *found.trace.sources),
            others=(found.trace, *chain.from_iterable(own)),
        )

    @override
    def forced(self, batch: PairBatch) -> Forced:
        batch = move(batch, self.device)
        matched = self.model(batch.first, batch.first_mask, batch.second, batch.second_mask)
        read = looked(matched.first.weights, batch.first_mask, batch.second_mask)
        return forced_labels(matched.log_probs, batch.labels, read)

    @property
    @override
    def can_erase(self) -> bool:
        return True

    @override
    def without_each(self, example: Example, tokens: Sequence[str]) -> Float[Tensor, "R T"]:
        """Erase the positions of the first text, then the positions of the second."""
        first, second = (
            self.vocabularies.source.encode(symbols) or [UNKNOWN] for symbols in self.texts(example)
        )
        both = with_each_unknown(torch.tensor([[*first, *second]], device=self.device))
        of_first, of_second = both.split([len(first), len(second)], dim=1)
        return self.model(of_first, None, of_second, None).log_probs[:, self._numbers_of(tokens)]

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        first, second = self.texts(example)
        return len(first), len(second)

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        numbers = [self._numbers(example) for example in examples]
        batch = move(
            collate_text_pairs(
                [Encoded(first, second=second, target=[0]) for first, second in numbers]
            ),
            self.device,
        )
        matched = self.model(
            *settled(batch.first, batch.first_mask), *settled(batch.second, batch.second_mask)
        )
        weights = matched.first.weights

        def trace(number: int, _label: str) -> AttentionTrace:
            """Return the attention of each word of the first text to the second."""
            first, second = self.texts(examples[number])
            rows = weights[number, : len(numbers[number][0]), : len(numbers[number][1])]
            return AttentionTrace(
                kind=self.spec.model.attention.kind,
                sources=tuple(second or [""]),
                targets=tuple(first or [""]),
                weights=tuple(map(tuple, rows.tolist())),
            )

        return Labeled(matched.log_probs, trace)

    def _numbers(self, example: Example) -> tuple[list[int], list[int]]:
        first, second = self.texts(example)
        known = self.vocabularies.source
        return numbered(known, first), numbered(known, second)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PairClassificationSpec(AbstractTextSpec[PairClassification]):
    """Classification of two texts by one label."""

    kind: Literal["pair_classification"] = "pair_classification"
    source: TokenizerSpec = setting(WhitespaceSpec(), "tokenizer of both texts")
    min_count: int = setting(
        1, "tokens that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent tokens first; none: no maximum", at_least=5
    )
    model: DecomposableAttentionSpec = setting(
        DecomposableAttentionSpec(), "the model that scores the labels of a pair"
    )
    label_smoothing: float = setting(
        0.0,
        "label smoothing: probability that the targets spread over all labels",
        at_least=0,
        at_most=1,
    )
    word_dropout: float = setting(
        0.0, "fraction of tokens replaced by the unknown token in training", at_least=0, at_most=1
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    @property
    @override
    def inputs(self) -> Inputs:
        return Inputs(second=True)

    @override
    def build(self, vocabularies: Vocabularies) -> PairClassification:
        """Build the task with fresh weights."""
        model = self.model.build(
            vocabulary=len(vocabularies.source),
            num_classes=len(vocabularies.labels_of("PairClassification")),
        )
        # Word vectors keep torch's initialization, far from each other: the model then recognizes at once a word
        # that is in both texts. With vectors near 0, it would have to learn this word by word.
        return PairClassification(self, vocabularies, model)

    @override
    def trained_on(self, examples: Iterable[Example]) -> "PairClassificationSpec":
        pairs = (example.input_as(TextPair) for example in examples)
        texts = (text for pair in pairs for text in (pair.first, pair.second))
        return replace(self, source=trained(self.source, texts))

    @override
    def counted(self, example: Example) -> Symbols:
        pair, encode = example.input_as(TextPair), self.source.encode
        return Symbols(
            [*encode(pair.first), *encode(pair.second)],
            labels=[label_of(example)],
        )

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)


def _by_head(attended: Attended) -> Float[Tensor, "H S S"]:
    """Return the weights with an axis of heads, which a self-attention without heads lacks."""
    return attended.weights.reshape(-1, *attended.weights.shape[-2:])


def _best_heads(attended: Attended) -> Bool[Tensor, "S S"] | None:
    """Return the most probable tree of a single head over trees, as the head of each word."""
    tree, weights = attended.distribution, _by_head(attended)
    if len(weights) > 1 or not isinstance(tree, ProjectiveTree | SpanningTree):
        return None
    heads = tree.argmax().reshape(weights.shape[-1])
    return one_hot(heads, len(heads) + 1)[:, 1:].bool()
