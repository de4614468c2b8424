"""Tagging: one tag for every word of a sentence.

    loss = - log p(tags | words),   p a chain over the tags (CRF), or independent tags

Words and tags are separated by spaces, with one tag per word.

Axes: B sentences, T words, N candidates.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

from torch import nn
from typing_extensions import override

from ..batch_invariant import LEAST_ROWS
from ..data import Encoded, Example, SpellingSpec, WhitespaceSpec
from ..data._batches import TaggedBatch, collate_tagged, move
from ..data.vocabularies._tally import Symbols, Tally
from ..data.vocabularies._vocabularies import Vocabularies, located, required_target
from ..data.vocabularies._vocabulary import Labels
from ..distributions import LinearChain
from ..errors import DataError, SpecError
from ..metrics import AbstractMetricSpec
from ..metrics._calibration import Calibration
from ..metrics._metrics import accuracy, exact_match, f1, span_f1
from ..metrics._statistics import Statistics
from ..models import AbstractTaggerSpec, TaggerSpec
from ..networks import initialize_embeddings
from ..specs import setting
from .base._answering import AbstractAnsweringTask, Answers, Search
from .base._evaluation import MainMetric
from .base._forced import Forced
from .base._losses import word_dropout
from .base._prediction import Loss, PredictionSpec
from .base._size_classes import settled
from .base._task import OutputKind
from .base._text_spec import AbstractTextSpec
from .explaining._explanation import Alternative, ExplainedStep, Explanation, Way

OUTSIDE = "O"  # the tag of words that are in no span
_SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
_ONE_TAGGING = PredictionSpec(beam_size=1)


@final
class Tagging(AbstractAnsweringTask[nn.Module]):
    """Tagging of the words of a sentence.

    Args:
        spec: Settings of the task.
        vocabularies: Vocabulary of words and the tags, as `labels`.
        model: Tagger that returns a `LinearChain` over the tags.
    """

    is_complete = False
    least_rows = LEAST_ROWS

    def __init__(self, spec: "TaggingSpec", vocabularies: Vocabularies, model: nn.Module) -> None:
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self._labels: Labels = vocabularies.labels_of("Tagging")
        self.prediction, self.calibration = spec.prediction, Calibration()
        self._has_spans = has_spans(self._labels.names)

    @property
    @override
    def spec(self) -> "TaggingSpec":
        return self._spec

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("span_f1" if self._has_spans else "accuracy", True)

    @override
    def encode(self, example: Example) -> Encoded:
        words, tags = self.symbols(example), self._tags(example)
        with located(example):
            numbers = [self._labels.number(tag) for tag in tags]
        return Encoded(
            self.vocabularies.source.encode(words), target=numbers, spelling=self._spelling(words)
        )

    def encode_source(self, example: Example) -> Encoded:
        """Encode an example without known tags; all tags are 0.

        Args:
            example: Example; its target is ignored.

        Returns:
            The ids of the words and their spelling.
        """
        words = self.symbols(example)
        numbers = self.vocabularies.source.encode(words)
        return Encoded(numbers, target=[0] * len(words), spelling=self._spelling(words))

    def _spelling(self, words: Sequence[str]) -> Sequence[int]:
        spelling = self.spec.spelling
        return () if spelling is None else spelling.encode(words)

    @override
    def collate(self, examples: Sequence[Encoded]) -> TaggedBatch:
        return collate_tagged(examples)

    @override
    def loss(self, batch: TaggedBatch, state: Any = None) -> Loss:
        """Compute the loss of whole sentences, counted by words."""
        batch = move(batch, self.device)
        if self.model.training:
            batch = replace(
                batch, tokens=word_dropout(batch.tokens, batch.mask, self.spec.word_dropout)
            )
        return Loss(-self.taggings(batch).log_prob(batch.tags).sum(), batch.mask.sum())

    def taggings(self, batch: TaggedBatch) -> LinearChain:
        """Return the distribution over the taggings of each sentence.

        Args:
            batch: Batch of sentences, on any device.

        Returns:
            One distribution per sentence.
        """
        batch, features = move(batch, self.device), self.spec.spelling
        spelling = batch.spelling
        if spelling is None and features is not None:  # no sentence has a word
            spelling = batch.tokens.new_zeros(*batch.tokens.shape, features.num_features)
        if spelling is None:
            return self.model(batch.tokens, batch.mask)
        return self.model(batch.tokens, batch.mask, spelling)

    @property
    @override
    def output_kind(self) -> OutputKind:
        return "labels"

    @property
    @override
    def guessing_loss(self) -> float:
        return math.log(len(self._labels.names))

    @override
    def forced(self, batch: TaggedBatch) -> Forced:
        batch = move(batch, self.device)
        taggings = self.taggings(batch)
        right = (taggings.argmax() == batch.tags) & batch.mask
        return Forced(taggings.log_prob(batch.tags), int(batch.mask.sum()), int(right.sum()))

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain each word: the marginal probability of each tag."""
        settings = replace(self.prediction, nbest=way.beam_size, beam_size=way.beam_size)
        (found,) = self.predict([example], settings)
        words, rows = self.symbols(example), list[list[float]]()
        if words:
            batch = self.collate([self.encode_source(example)])
            with self.answering():
                rows = self.taggings(batch).marginals()[0].tolist()
        steps = list[ExplainedStep]()
        for tag, row in zip(found.output.split(), rows, strict=True):
            ranked = sorted(zip(row, self._labels.names, strict=True), reverse=True)
            listed = tuple(Alternative(name, p) for p, name in ranked[: way.alternatives])
            steps.append(ExplainedStep(tag, row[self._labels.number(tag)], listed))
        return Explanation(
            task=self.spec.kind,
            input=example.text,
            output=found.output,
            score=found.score,
            confidence=found.confidence,
            nbest=found.nbest,
            sources=tuple(words),
            steps=tuple(steps),
        )

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.spec.source.encode(example.text)

    @override
    def reference(self, example: Example) -> str:
        return " ".join(self._tags(example))

    @override
    def trivial_answers(self, example: Example) -> Mapping[str, str]:
        tags = self.vocabularies.majority
        if "" not in tags:
            return {}
        words = self.symbols(example)
        return {
            "the most frequent tag of each word": " ".join(tags.get(w, tags[""]) for w in words)
        }

    @override
    def calibrate(
        self, examples: Sequence[Example], settings: PredictionSpec | None = None
    ) -> None:
        if self.spec.tune_recall and self._has_spans and OUTSIDE in self._labels:
            self._tune_recall(examples)
        super().calibrate(examples, settings)

    def _tune_recall(self, examples: Sequence[Example]) -> None:
        """Lower the score of the tag O by the smallest amount that maximizes span F1. A model predicts O too often for
        names that it has not seen.
        """
        scores, outside = self.spec.model.tag_bias(self.model), self._labels.number(OUTSIDE)
        assert scores is not None  # the spec refuses other models
        bias = scores.detach()
        first, found = float(bias[outside]), dict[float, float]()
        for shift in _SHIFTS:
            bias[outside] = first - shift
            found[shift] = self.evaluate(examples, _ONE_TAGGING).value
        best = max(found, key=lambda shift: (found[shift], -shift))
        bias[outside] = first - best

    def _tags(self, example: Example) -> list[str]:
        tags = WhitespaceSpec().encode(required_target(example))
        words = self.symbols(example)
        if len(tags) != len(words):
            with located(example):
                raise DataError(
                    f"{len(words)} words and {len(tags)} tags, expected equal numbers. Separate words "
                    f"and tags by spaces."
                )
        return tags

    @override
    def searcher(self) -> Search:
        return self._search

    def _search(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        encoded = [self.encode_source(example) for example in examples]
        taggings = self.taggings(_settled(collate_tagged(encoded)))
        best = taggings.topk(settings.beam_size)
        # The marginal probability of the tag of each word.
        chosen = best.values[0].clamp(min=0).unsqueeze(-1)
        marginals = taggings.marginals()
        words = marginals.gather(-1, chosen).squeeze(-1).tolist()
        values, totals = best.values.transpose(0, 1).tolist(), best.log_probs.T.tolist()
        found = []
        for number, example in enumerate(encoded):
            size = len(example.source)
            real = [n for n, total in enumerate(totals[number]) if total > float("-inf")]
            outputs = [
                " ".join(self._labels.names[tag] for tag in values[number][n][:size]) for n in real
            ]
            scores = [totals[number][n] for n in real]
            found.append(Answers(outputs, scores, scores, tuple(words[number][:size])))
        return found

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        split = WhitespaceSpec().encode
        rows = [split(text) for text in references], [split(text) for text in outputs]
        found = [accuracy(*rows), f1(*rows), exact_match(references, outputs)]
        return [span_f1(*rows), *found] if self._has_spans else found


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingSpec(AbstractTextSpec[Tagging]):
    """Tagging of words, one tag per word."""

    kind: Literal["tagging"] = "tagging"
    source: WhitespaceSpec = setting(WhitespaceSpec(), "tokenizer of the sentence")
    min_count: int = setting(
        1, "words that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent words first; none: no maximum", at_least=5
    )
    model: TaggerSpec | AbstractTaggerSpec = setting(
        TaggerSpec(), "the model that scores the tags of a sentence"
    )
    spelling: SpellingSpec | None = setting(
        None, "spelling features of each word; none: no spelling features"
    )
    tune_recall: bool = setting(
        False,
        "after training, lower the score of the tag O by the amount with the best validation span F1",
    )
    word_dropout: float = setting(
        0.1, "fraction of words replaced by the unknown token in training", at_least=0, at_most=1
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    @override
    def build(self, vocabularies: Vocabularies) -> Tagging:
        """Build the task with fresh weights."""
        spelling, vocabulary = self.spelling, len(vocabularies.source)
        num_tags = len(vocabularies.labels_of("Tagging"))
        if spelling is None:
            model = self.model.build(vocabulary=vocabulary, num_tags=num_tags)
        else:
            model = self.model.build_spelled(
                vocabulary=vocabulary,
                num_tags=num_tags,
                num_features=spelling.num_features,
                num_buckets=spelling.num_buckets,
            )
        if self.tune_recall and self.model.tag_bias(model) is None:
            name = type(self.model).__name__
            raise SpecError(
                f"TaggingSpec: tune_recall needs a model with a bias for the tag O, got the model "
                f"{name}, which has none. Set tune_recall to false, or give {name} a method tag_bias."
            )
        task = Tagging(self, vocabularies, model)
        initialize_embeddings(task.model)
        return task

    @override
    def counted(self, example: Example) -> Symbols:
        tags = WhitespaceSpec().encode(required_target(example))
        words = self.source.encode(example.text)
        return Symbols(words, labels=tags, answers=list(zip(words, tags, strict=False)))

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocab_size)


def _settled(batch: TaggedBatch) -> TaggedBatch:
    """Return the batch padded to the size class of its sentences."""
    tokens, mask = settled(batch.tokens, batch.mask)
    spelling = batch.spelling
    return replace(
        batch,
        tokens=tokens,
        mask=mask,
        tags=settled(batch.tags, batch.mask).tokens,
        spelling=None if spelling is None else settled(spelling, batch.mask).tokens,
    )


def has_spans(tags: Iterable[str]) -> bool:
    """Return True if tags mark spans: only B-X, I-X and O.

    Args:
        tags: Distinct tags of a data set.

    Returns:
        False for other tags, and if O is the only tag.

    Examples:
        >>> has_spans(["O", "B-LOC", "I-LOC"]), has_spans(["NOUN", "VERB"]), has_spans(["O"])
        (True, False, False)
    """
    others = [tag for tag in tags if tag != OUTSIDE]
    return bool(others) and all(tag[:2] in ("B-", "I-") for tag in others)
