"""Transduction: from one text to another, such as pronunciation, transliteration, inflection and translation.

    loss = - sum over t of log p(y_t | y_<t, x)  (smoothed)
           + alignment_weight * alignment loss
           + doubly_stochastic * sum over s of (1 - sum over t of w[t, s])^2
           + coverage * sum over t, s of min(w[t, s], weight that s received before t)

References: Xu et al. 2015 (doubly stochastic); See et al. 2017 (coverage).

Axes: B examples, T target positions, S source positions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ..attention import Layout, coverage_loss
from ..data import (
    BEGIN,
    END,
    CharacterSpec,
    Encoded,
    Example,
    FeaturesSpec,
    Seq2SeqBatch,
    TokenizerSpec,
    Vocabulary,
)
from ..data._batches import move
from ..data._example import read_alignment
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, required_target, trained
from ..errors import ValueRangeError
from ..metrics import AbstractMetricSpec
from ..metrics._statistics import Statistics
from ..models import Seq2Seq, Seq2SeqSpec
from ..models._seq2seq import Source
from ..networks.decoders._steps import TokenLosses
from ..specs import setting
from ._output_scores import scores_of_texts, scores_of_words
from ._source_forms import AbstractSourceForm, DocumentForm, TextForm
from ._summaries import by_source, first_sentence, rouges
from ._unseen import UnseenTokens, check_pointed
from .base._evaluation import MainMetric
from .base._forced import Forced, looked
from .base._losses import alignment_loss, doubly_stochastic_loss, word_dropout
from .base._prediction import Loss, PredictionSpec
from .base._searching import Reading
from .base._task import AbstractTask
from .base._task_spec import Inputs
from .base._text_spec import AbstractTextSpec
from .base._writing import Weighted
from .explaining._written import AbstractExplainedWriting

_ERASED = 256  # copies of a source that are scored at once
_LONG_ANSWER = 100  # characters; longer targets are never frequent


@final
class Transduction(AbstractExplainedWriting[Seq2Seq, "TransductionSpec"]):
    """Transduction of texts with an encoder, a decoder and attention.

    Args:
        spec: Spec of the task.
        vocabularies: Tokens of sources, targets and features.
        model: Model that reads a source and writes a target.
    """

    def __init__(
        self, spec: "TransductionSpec", vocabularies: Vocabularies, model: Seq2Seq
    ) -> None:
        super().__init__(spec, vocabularies, model)
        self._form = spec.form
        self._has_slots = spec.num_slots > 0
        self._reads = UnseenTokens(vocabularies.source, spec.num_slots)
        self._writes = UnseenTokens(self._target, spec.num_slots)

    @property
    @override
    def main_metric(self) -> MainMetric:
        return {
            "words": MainMetric("wer", False),
            "texts": MainMetric("bleu", True),
            "summaries": MainMetric("rouge1", True),
        }[self.spec.outputs]

    @override
    def encode(self, example: Example) -> Encoded:
        spec = self.spec
        target = spec.target.encode(required_target(example))
        slots = self._slots(example)
        if spec.model.decoder.points:
            check_pointed(example, self.symbols(example), target)
        return Encoded(
            self._source_ids(example, slots),
            self._writes.encode(target, slots),
            features=self._feature_ids(example),
            alignment=read_alignment(example) if spec.alignment_weight else (),
        )

    @override
    def collate(self, examples: Sequence[Encoded]) -> Seq2SeqBatch:
        return self._form.collate(examples)

    @override
    def loss(self, batch: Seq2SeqBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over target tokens, including the end token."""
        if self.model.training and self.spec.word_dropout:
            batch = move(batch, self.device)
            hidden = word_dropout(batch.source, batch.source_mask, self.spec.word_dropout)
            batch = replace(batch, source=hidden)
        return super().loss(batch, state)

    @override
    def _others(self, batch: Seq2SeqBatch, scored: TokenLosses) -> dict[str, Weighted]:
        spec, is_aligned = self.spec, batch.alignment is not None and self.spec.alignment_weight > 0
        if not (is_aligned or spec.doubly_stochastic or spec.coverage):
            return {}
        attention, weights = spec.model.decoder.attention, scored.weights
        if attention is None or weights is None:
            raise ValueRangeError(
                "Transduction: alignment_weight, doubly_stochastic and coverage need a decoder with attention, "
                "got one without. Set decoder.attention to softmax, or the three weights to 0."
            )
        if attention.has_heads:
            weights = weights.mean(-3)
        # Features precede the source. They are never aligned, and may be read at every step.
        weights = weights[..., -batch.source[0].numel() :]
        others = dict[str, Weighted]()
        if is_aligned and batch.alignment is not None:
            aligned = alignment_loss(
                weights, batch.alignment, exclusive=spec.model.decoder.is_exclusive
            )
            others["alignment"] = Weighted(spec.alignment_weight, aligned)
        if spec.doubly_stochastic:
            once = doubly_stochastic_loss(weights, batch.mask, batch.source_mask)
            others["doubly_stochastic"] = Weighted(spec.doubly_stochastic, once)
        if spec.coverage:
            others["coverage"] = Weighted(spec.coverage, coverage_loss(weights, batch.mask).sum())
        return others

    @property
    @override
    def has_one_answer(self) -> bool:
        return self.spec.outputs == "words"

    @property
    @override
    def guessing_loss(self) -> float:
        return math.log(self.model.num_tokens)

    @override
    def forced(self, batch: Seq2SeqBatch) -> Forced:
        batch = move(batch, self.device)
        source = self.source_of(batch)
        unrolled = self.model(source.tokens, source.mask, batch.tokens, batch.mask)
        chosen = unrolled.log_probs.gather(-1, batch.targets.unsqueeze(-1)).squeeze(-1)
        right = (unrolled.log_probs.argmax(-1) == batch.targets) & batch.mask
        weights = unrolled.weights
        return Forced(
            (chosen * batch.mask).sum(-1),
            int(batch.mask.sum()),
            int(right.sum()),
            None if weights is None else looked(weights, batch.mask, source.mask.flatten(1)),
        )

    @property
    @override
    def can_erase(self) -> bool:
        return True

    @override
    def without_each(self, example: Example, tokens: Sequence[str]) -> Float[Tensor, "R T"]:
        numbers = self._writes.encode(tokens, self._slots(example))
        written = [
            END if token == "" else number for token, number in zip(tokens, numbers, strict=True)
        ]
        source = self.read([example])
        sources = self._form.erased(*source)
        masks = source.mask.expand_as(sources)
        targets = torch.tensor([written], device=self.device).expand(len(sources), -1)
        before = torch.full_like(targets[:, :1], BEGIN)
        shifted = torch.cat([before, targets[:, :-1]], 1)
        # A document is as large as all its sentences: process some rows at a time.
        rows = [
            self.model.score(*some).log_prob
            for some in zip(
                *(part.split(_ERASED) for part in (sources, masks, shifted, targets)), strict=True
            )
        ]
        return torch.cat(rows)

    @override
    def symbols(self, example: Example) -> list[str]:
        return self._form.symbols(example)

    def _encode_source(self, example: Example) -> Encoded:
        ids = self._source_ids(example, self._slots(example))
        return Encoded(ids, features=self._feature_ids(example))

    def _source_ids(self, example: Example, slots: Mapping[str, int]) -> list[int]:
        sentences = self._form.sentences(example)
        return self._form.joined([self._reads.encode(each, slots) for each in sentences])

    def _feature_ids(self, example: Example) -> Sequence[int]:
        spec, vocabulary = self.spec.features, self.vocabularies.features
        if spec is None or vocabulary is None:
            return ()
        return vocabulary.encode(spec.encode(example.features))

    def _slots(self, example: Example) -> dict[str, int]:
        """Return the ids of the unseen tokens of a source; there are none without copying."""
        return self._reads.slots(self.symbols(example)) if self._has_slots else {}

    @override
    def decode(self, tokens: Iterable[int], example: Example) -> list[str]:
        return self._writes.decode(tokens, self._slots(example))

    @override
    def source_of(self, batch: Seq2SeqBatch) -> Source:
        """Return the encoder input of a batch: features, if there are any, before the source."""
        if batch.features is None or batch.features_mask is None:
            return Source(batch.source, batch.source_mask)
        return self.model.with_features(
            batch.features, batch.features_mask, batch.source, batch.source_mask
        )

    @override
    def text_of(self, batch: Seq2SeqBatch) -> Seq2SeqBatch:
        return batch

    @override
    def with_text(self, batch: Seq2SeqBatch, text: Seq2SeqBatch) -> Seq2SeqBatch:
        return text

    @override
    def read(self, examples: Sequence[Example]) -> Source:
        """Return the encoder input of examples: features, if there are any, and the source tokens."""
        return self._read([self._encode_source(example) for example in examples])

    @override
    def reading(self, examples: Sequence[Example], settings: PredictionSpec) -> Reading:
        encoded = [self._encode_source(example) for example in examples]
        limits = [self._limit(len(one.source), settings) for one in encoded]
        source = self._form.settled(*self._read(encoded))
        return Reading(source, limits, self._form.positions(examples, source.mask))

    @override
    def size(self, example: Example) -> int:
        return len(self.places(example))

    def _read(self, encoded: Sequence[Encoded]) -> Source:
        return self.source_of(move(self._form.collate(encoded), self.device))

    @override
    def places(self, example: Example) -> tuple[str, ...]:
        features = [] if self.spec.features is None else self.spec.features.encode(example.features)
        return (*features, *self._form.places(example))

    @override
    def layout(self, example: Example) -> Layout:
        return self._form.layout(example)

    @override
    def shape_class(self, example: Example) -> tuple[int, ...]:
        return self._form.shape_class(example)

    @override
    def limit(self, example: Example, settings: PredictionSpec | None = None) -> int:
        return self._limit(len(self._encode_source(example).source), settings or self.prediction)

    @override
    def _groups(self, examples: Sequence[Example]) -> Sequence[Sequence[Example]]:
        """Group all summaries of a source, because each source is predicted only once."""
        if self.spec.outputs != "summaries":
            return super()._groups(examples)
        return by_source(examples)

    @override
    def _scored(
        self, groups: Sequence[Sequence[Example]], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        if self.spec.outputs != "summaries":
            return super()._scored(groups, outputs)
        references = [[self.reference(one) for one in summaries] for summaries in groups]
        return rouges(references, outputs)

    @override
    def trivial_answers(self, example: Example) -> Mapping[str, str]:
        source, target = self._form.text(example), self.vocabularies.majority.get("")
        if self.spec.outputs == "summaries":
            first = first_sentence(source)
            return {"the first sentence of the source": first, "a copy of the source": source}
        if target is None:
            return {}
        return {"the most frequent target": target, "a copy of the source": source}

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        match self.spec.outputs:
            case "words":
                return scores_of_words(self.spec.target, references, outputs)
            case "texts":
                return scores_of_texts(self.spec.target, references, outputs)
            case "summaries":
                return rouges(references, outputs)


def as_transduction(task: AbstractTask[Any], why: str) -> Transduction:
    """Return the task if it maps texts to texts; otherwise raise `ValueRangeError` with the reason."""
    if isinstance(task, Transduction):
        return task
    raise ValueRangeError(f"{why}, got a model for {task.spec.kind}. Use a transduction model.")


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TransductionSpec(AbstractTextSpec[Transduction]):
    """Transduction of a text to another text."""

    kind: Literal["transduction"] = "transduction"
    source: TokenizerSpec = setting(CharacterSpec(), "tokenizer of the source")
    target: TokenizerSpec = setting(CharacterSpec(), "tokenizer of the target")
    features: FeaturesSpec | None = setting(None, "tokenizer of the features column")
    outputs: Literal["words", "texts", "summaries"] = setting(
        "words",
        "the kind of outputs: words, scored as correct or wrong (WER), texts (BLEU), or summaries (ROUGE)",
    )
    min_count: int = setting(
        1, "tokens that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None,
        "maximum size of each vocabulary, most frequent tokens first; none: no maximum",
        at_least=5,
    )
    model: Seq2SeqSpec = setting(
        Seq2SeqSpec(), "the model that reads the source and writes the target"
    )
    label_smoothing: float = setting(
        0.1,
        "label smoothing: probability that the targets spread over all tokens",
        at_least=0,
        at_most=1,
    )
    word_dropout: float = setting(
        0.0,
        "fraction of source tokens replaced by the unknown token in training",
        at_least=0,
        at_most=1,
    )
    alignment_weight: float = setting(
        0.0, "weight of the loss that compares attention with given alignments; 0: off", at_least=0
    )
    doubly_stochastic: float = setting(
        0.0,
        "weight of the loss for reading every position once (Xu et al. 2015); 0: off",
        at_least=0,
    )
    coverage: float = setting(
        0.0, "weight of the loss for reading a position again (See et al. 2017); 0: off", at_least=0
    )
    unseen_slots: int = setting(
        16,
        "with decoder.copy or decoder.point: how many different unseen tokens of a source can be copied",
        at_least=1,
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    @property
    @override
    def inputs(self) -> Inputs:
        return Inputs(features=self.features is not None)

    @property
    def form(self) -> AbstractSourceForm:
        """Whether a source is one row of tokens, or a document of sentences."""
        return (DocumentForm if self.model.reads_documents else TextForm)(self.source)

    @property
    def num_slots(self) -> int:
        """Number of ids after the vocabulary for unseen tokens; 0 without copying."""
        return self.unseen_slots if self.model.decoder.copies else 0

    @property
    @override
    def attention_choices(self) -> tuple[str, ...]:
        # Summing over positions needs a table of vocabulary by length, which is small enough only for words.
        summed = ("segment", "latent_hard", "latent_monotone") if self.outputs == "words" else ()
        levels = ("hierarchical",) if self.model.reads_documents else ()
        return ("softmax", "sparsemax", *summed, *levels)

    @override
    def build(self, vocabularies: Vocabularies) -> Transduction:
        """Build the task with fresh weights."""
        self._check()
        model = self.model.build(
            source_vocabulary=len(vocabularies.source) + self.num_slots,
            target_vocabulary=len(vocabularies.target_of("Transduction")) + self.num_slots,
            num_features=len(vocabularies.features or ()),
        )
        return Transduction(self, vocabularies, model)

    def _check(self) -> None:
        """Raise an error for settings that need a source in one row."""
        given = {"features": self.features is not None, "alignment_weight": self.alignment_weight}
        for name, is_set in given.items():
            if is_set and self.model.reads_documents:
                raise ValueRangeError(
                    f"Transduction: {name} needs a source that is one text, got the encoder of documents. Set encoder "
                    f"to text, or leave {name} at its default."
                )

    @override
    def trained_on(self, examples: Iterable[Example]) -> "TransductionSpec":
        return replace(
            self,
            source=trained(self.source, map(self.form.text, examples)),
            target=trained(self.target, (required_target(example) for example in examples)),
        )

    @override
    def counted(self, example: Example) -> Symbols:
        target, source = required_target(example), example.source
        is_row = isinstance(source, str) and not self.model.reads_documents
        return Symbols(
            self.source.encode(str(source)) if is_row else self.form.symbols(example),
            self.target.encode(target),
            None if self.features is None else self.features.encode(example.features),
            answers=[("", target)] if len(target) <= _LONG_ANSWER else (),
        )

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        found = tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)
        if not self.model.decoder.copies or tally.target is None:
            return found
        # A copied token is one token, so source and target share a vocabulary.
        counts = tally.source + tally.target
        shared = Vocabulary.of(counts, min_count=self.min_count, max_size=self.max_vocab_size)
        return replace(found, source=shared, target=shared)
