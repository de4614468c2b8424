"""Pair classification: one label for two texts, between which a model attends.

    loss = - log p(label | first text, second text)  (smoothed)

For example, does a sentence follow from another, do two questions ask the same, does a text answer a question?

References: Parikh et al. 2016; Kim et al. 2017, section 4.4.

Axes: B pairs, S tokens of the first text, R tokens of the second.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot
from typing_extensions import override

from ..attention import Attended, AttentionTrace, trace_of
from ..data import Encoded, Example, TextPair, TokenizerSpec, WhitespaceSpec
from ..data._batches import PairBatch, collate_text_pairs, move
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, located, numbered, trained
from ..distributions import ProjectiveTree, SpanningTree
from ..metrics import AbstractMetricSpec
from ..models import AttentiveReaderSpec, DecomposableAttentionSpec, WordByWordSpec
from ..models._matcher import AbstractMatcher, Matched, Reading
from ..specs import setting
from ._given_heads import HeadedText, read_heads
from .base._forced import Forced, forced_labels, looked
from .base._labeling import AbstractLabeling, Labeled, label_of, no_trace
from .base._losses import word_dropout
from .base._prediction import Loss, PredictionSpec
from .base._size_classes import settled
from .base._task_spec import Inputs
from .base._text_spec import AbstractTextSpec
from .explaining._erasing import with_each_unknown
from .explaining._explanation import Explanation, Way

Part = TypeVar("Part")


@final
class PairClassification(AbstractLabeling[AbstractMatcher, "PairClassificationSpec"]):
    """Classification of pairs of texts."""

    @override
    def encode(self, example: Example) -> Encoded:
        return self._encoded(example, self._label(example))

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
        matched = self._matched(replace(batch, first=first, second=second))
        return self._loss(matched.log_probs, batch.labels, self.spec.label_smoothing)

    def _matched(self, batch: PairBatch) -> Matched | Reading:
        """Run the model, with the heads of the words if it reads them."""
        texts = batch.first, batch.first_mask, batch.second, batch.second_mask
        if batch.first_heads is None or batch.second_heads is None:
            return self.model(*texts)
        return self.model(*texts, heads=(batch.first_heads, batch.second_heads))

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
        first, second = self._headed(example)
        return first.words, second.words

    def self_attentions(self, text: str) -> tuple[AttentionTrace, ...]:
        """Return the self-attentions of the encoder for a text.

        Args:
            text: Text to encode.

        Returns:
            The attention weights of each token, averaged over the heads that share an attention, with the most
            probable tree of a single head over trees; empty if the encoder has no self-attention.
        """
        kinds = self.spec.model.self_attention_kinds
        headed = self.spec.headed(text)
        words = headed.words or [""]
        numbers = torch.tensor(numbered(self.vocabularies.source, words), device=self.device)
        heads = None
        if self.spec.model.reads_heads:
            heads = torch.tensor(headed.heads or [0], device=self.device)
        with self.answering():
            found = self.model.self_attentions(numbers, heads) if kinds else ()
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
        pair = example.input_as(TextPair)
        own = [self.self_attentions(text) for text in (pair.first, pair.second)]
        between = () if found.trace is None else (found.trace,)
        sources = (word for text in self.texts(example) for word in text or [""])
        return replace(
            explanation, sources=tuple(sources), others=(*between, *chain.from_iterable(own))
        )

    @override
    def forced(self, batch: PairBatch) -> Forced:
        batch = move(batch, self.device)
        matched = self._matched(batch)
        read = None
        if matched.weights is not None:
            label = torch.ones_like(batch.labels, dtype=torch.bool).unsqueeze(-1)
            sides = self._sides(batch.first_mask, batch.second_mask, label)
            read = looked(matched.weights, *sides)
        return forced_labels(matched.log_probs, batch.labels, read)

    def _sides(self, first: Part, second: Part, label: Part) -> tuple[Part, Part]:
        """Return the queries and the positions of the attention between the texts."""
        sides = {"first": (first, second), "second": (second, first), "label": (label, first)}
        return sides[self.spec.model.querying]

    @property
    @override
    def can_erase(self) -> bool:
        return True

    @override
    def without_each(self, example: Example, tokens: Sequence[str]) -> Float[Tensor, "R T"]:
        """Erase the positions of the first text, then the positions of the second."""
        encoded = self._encoded(example, 0)
        batch = move(self.collate([encoded]), self.device)
        both = with_each_unknown(torch.cat([batch.first, batch.second], 1))
        sizes = [batch.first.shape[1], batch.second.shape[1]]
        first, second = both.split(sizes, dim=1)
        rows = move(self.collate([encoded] * len(both)), self.device)
        log_probs = self._matched(replace(rows, first=first, second=second)).log_probs
        return log_probs[:, self._numbers_of(tokens)]

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        first, second = self.texts(example)
        return len(first), len(second)

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        batch = move(self.collate([self._encoded(each, 0) for each in examples]), self.device)
        matched = self._matched(_settled(batch))
        weights, kind = matched.weights, self.spec.model.attention_kind
        if weights is None or kind is None:
            return Labeled(matched.log_probs, no_trace)

        def trace(number: int, label: str) -> AttentionTrace:
            """Return the attention between the texts, by word or for the label."""
            first, second = (text or [""] for text in self.texts(examples[number]))
            targets, sources = self._sides(first, second, [label])
            rows = weights[number, : len(targets), : len(sources)]
            return AttentionTrace(
                kind=kind,
                sources=tuple(sources),
                targets=tuple(targets),
                weights=tuple(map(tuple, rows.tolist())),
            )

        return Labeled(matched.log_probs, trace)

    def _encoded(self, example: Example, label: int) -> Encoded:
        known, (first, second) = self.vocabularies.source, self._headed(example)
        words, others = numbered(known, first.words), numbered(known, second.words)
        if not self.spec.model.reads_heads:
            return Encoded(words, [label], second=others)
        heads, other_heads = first.heads or [0], second.heads or [0]
        return Encoded(words, [label], second=others, heads=heads, second_heads=other_heads)

    def _headed(self, example: Example) -> tuple[HeadedText, HeadedText]:
        pair = example.input_as(TextPair)
        with located(example):
            return self.spec.headed(pair.first), self.spec.headed(pair.second)


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
    model: DecomposableAttentionSpec | WordByWordSpec | AttentiveReaderSpec = setting(
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
        pair = example.input_as(TextPair)
        with located(example):
            words = [*self.headed(pair.first).words, *self.headed(pair.second).words]
        return Symbols(words, labels=[label_of(example)])

    def headed(self, text: str) -> HeadedText:
        """Return the tokens of a text, and their heads if the model reads heads.

        Args:
            text: One of the two texts.

        Returns:
            The words and the positions of their heads; no heads if the model reads none.
        """
        tokens = self.source.encode(text)
        return read_heads(tokens) if self.model.reads_heads else HeadedText(tokens, [])

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)


def _settled(batch: PairBatch) -> PairBatch:
    """Pad both texts of each pair to their size class."""
    changed = dict[str, Tensor]()
    for side in ("first", "second"):
        mask: Tensor = getattr(batch, f"{side}_mask")
        for name in (side, f"{side}_heads"):
            part: Tensor | None = getattr(batch, name)
            if part is not None:
                changed[name], changed[f"{side}_mask"] = settled(part, mask)
    return replace(batch, **changed)


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
