"""Classification: one label for a whole text or document; attention shows which words decided.

    loss = - log p(label | text)  (smoothed)

With a document encoder, the source is a `Document`; otherwise it is a text. With a bracketed encoder, brackets in the
text are a tree over its words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ..attention import AttentionTrace, Layout
from ..data import (
    END,
    Document,
    Encoded,
    Example,
    TokenizerSpec,
    WhitespaceSpec,
    collate_labelled,
)
from ..data._batches import LabeledBatch, collate_documents, move
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, numbered, trained
from ..data.vocabularies._vocabulary import UNKNOWN
from ..masking import mask_from_lengths
from ..metrics import AbstractMetricSpec
from ..models import AbstractClassifierSpec, ClassifierSpec
from ..networks import initialize_embeddings
from ..networks.encoders.trees._bracketing import CLOSE, OPEN
from ..specs import setting
from .base._forced import Forced, forced_labels, looked
from .base._labeling import AbstractLabeling, Labeled, label_of, no_trace
from .base._losses import word_dropout
from .base._prediction import Loss, PredictionSpec
from .base._size_classes import settled, settled_rows
from .base._text_spec import AbstractTextSpec
from .explaining._erasing import with_each_unknown
from .explaining._explanation import Explanation, Way

_BRACKETS = {"(": OPEN, ")": CLOSE}


@final
class Classification(AbstractLabeling[nn.Module, "ClassificationSpec"]):
    """Classification of texts or documents."""

    @override
    def encode(self, example: Example) -> Encoded:
        return Encoded(self._numbers(example), target=[self._label(example)])

    @override
    def collate(self, examples: Sequence[Encoded]) -> LabeledBatch:
        return collate_documents(examples) if self.is_of_documents else collate_labelled(examples)

    @override
    def loss(self, batch: LabeledBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over texts."""
        batch = move(batch, self.device)
        tokens = batch.tokens
        if self.model.training:
            is_word = batch.mask & (tokens != OPEN) & (tokens != CLOSE)
            tokens = word_dropout(tokens, is_word, self.spec.word_dropout)
        log_probs = self.model(tokens, batch.mask).log_probs
        return self._loss(log_probs, batch.labels, self.spec.label_smoothing)

    @property
    @override
    def attends(self) -> bool:
        return self.spec.model.attention_kind is not None

    @property
    @override
    def is_bridged(self) -> bool:
        return self.spec.model.is_bridged

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain the probabilities of all labels and the attention to words."""
        found, explanation = self._explained(example)
        trace = found.trace
        if trace is None:
            return explanation
        # Sentences of a document are padded after their words; the padding is not read.
        rows = zip(trace.sources, trace.weights[0], strict=True)
        weights = tuple(weight for word, weight in rows if word) or trace.weights[0]
        return replace(
            explanation,
            steps=(explanation.steps[0]._replace(weights=weights),),
            attention=trace.kind,
            exclusive=self.spec.model.is_exclusive,
            others=(trace,) if self.is_of_documents else (),
        )

    @override
    def forced(self, batch: LabeledBatch) -> Forced:
        batch = move(batch, self.device)
        classified = self.model(batch.tokens, batch.mask)
        weights, read = classified.weights, None
        if weights is not None:
            # The words of a document are positions like the words of a text.
            once = torch.ones_like(batch.labels, dtype=torch.bool).unsqueeze(-1)
            read = looked(weights.flatten(1).unsqueeze(-2), once, batch.mask.flatten(1))
        return forced_labels(classified.log_probs, batch.labels, read)

    @property
    @override
    def can_erase(self) -> bool:
        return not self.spec.model.reads_trees  # without a bracket, the text is another tree

    @override
    def without_each(self, example: Example, tokens: Sequence[str]) -> Float[Tensor, "R T"] | None:
        if not self.can_erase:
            return None
        numbers = self.vocabularies.source.encode(self.symbols(example)) or [UNKNOWN]
        sources = with_each_unknown(torch.tensor([numbers], device=self.device))
        labels = self._numbers_of(tokens)
        if not self.is_of_documents:
            return self.model(sources).log_probs[:, labels]
        lengths = [len(words) or 1 for words in self.sentences(example)]
        places = mask_from_lengths(torch.tensor(lengths, device=self.device), max(lengths))
        # A document is as large as all its sentences: process one row at a time.
        rows = [
            self.model(
                sources.new_zeros(places.shape).masked_scatter(places, row)[None], places[None]
            )
            for row in sources
        ]
        return torch.cat([row.log_probs for row in rows])[:, labels]

    @property
    def is_of_documents(self) -> bool:
        """True if texts are read as sentences, one per line."""
        return self.spec.model.reads_documents

    @override
    def symbols(self, example: Example) -> list[str]:
        return [symbol for sentence in self.sentences(example) for symbol in sentence]

    def sentences(self, example: Example) -> list[list[str]]:
        """Return the tokens of each sentence of a document; a text is one sentence.

        Args:
            example: Example whose source is a text or a document.

        Returns:
            One list of tokens per sentence, without empty sentences; at least one list.
        """
        encode = self.spec.source.encode
        if not self.is_of_documents:
            return [encode(example.text)]
        found = map(encode, example.input_as(Document).sentences)
        return [symbols for symbols in found if symbols] or [[]]

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        if not self.is_of_documents:
            return (self.size(example),)
        sentences = self.sentences(example)
        return len(sentences), max(map(len, sentences))

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        numbers = [Encoded(self._numbers(example), target=[0]) for example in examples]
        batch = move(self.collate(numbers), self.device)
        settle = settled_rows if self.is_of_documents else settled
        tokens, mask = settle(batch.tokens, batch.mask)
        classified = self.model(tokens, mask)
        weights, kind = classified.weights, self.spec.model.attention_kind
        if weights is None or kind is None:
            return Labeled(classified.log_probs, no_trace)

        def trace(number: int, label: str) -> AttentionTrace:
            """Return the attention weight of each word."""
            sentences, places = self.sentences(examples[number]), mask[number]
            if self.is_of_documents:
                num_words = max(1, *map(len, sentences))
                layout = Layout("sentences", len(sentences), num_words)
                rows = weights[number, : len(sentences), :num_words].flatten().tolist()
            else:
                num_words, layout = len(sentences[0]) or 1, Layout()
                rows = weights[number][places].tolist()
            return AttentionTrace(
                kind=kind,
                sources=tuple(
                    word for words in sentences for word in words + [""] * (num_words - len(words))
                ),
                targets=(label,),
                weights=(tuple(rows),),
                layout=layout,
            )

        return Labeled(classified.log_probs, trace)

    def _numbers(self, example: Example) -> list[int]:
        """Return the token ids; in a document, an end token follows each sentence."""
        known = self.vocabularies.source
        if self.spec.model.reads_trees:
            symbols = self.symbols(example)
            pairs = zip(symbols, known.encode(symbols), strict=True)
            return [_BRACKETS.get(symbol, number) for symbol, number in pairs] or [UNKNOWN]
        sentences = [numbered(known, symbols) for symbols in self.sentences(example)]
        if not self.is_of_documents:
            return sentences[0]
        return [number for numbers in sentences for number in (*numbers, END)]


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationSpec(AbstractTextSpec[Classification]):
    """Classification of a text by one label."""

    kind: Literal["classification"] = "classification"
    source: TokenizerSpec = setting(WhitespaceSpec(), "tokenizer of the text")
    min_count: int = setting(
        1, "tokens that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent tokens first; none: no maximum", at_least=5
    )
    model: ClassifierSpec | AbstractClassifierSpec = setting(
        ClassifierSpec(), "the model that scores the labels of a text"
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

    @override
    def build(self, vocabularies: Vocabularies) -> Classification:
        """Build the task with fresh weights."""
        model = self.model.build(
            vocabulary=len(vocabularies.source),
            num_classes=len(vocabularies.labels_of("Classification")),
        )
        task = Classification(self, vocabularies, model)
        initialize_embeddings(task.model)
        return task

    @override
    def trained_on(self, examples: Iterable[Example]) -> "ClassificationSpec":
        return replace(self, source=trained(self.source, map(self._text, examples)))

    @override
    def counted(self, example: Example) -> Symbols:
        return Symbols(self.source.encode(self._text(example)), labels=[label_of(example)])

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)

    def _text(self, example: Example) -> str:
        return str(example.source) if self.model.reads_documents else example.text
