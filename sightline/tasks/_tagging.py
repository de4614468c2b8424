"""Tagging: one tag for every word of a sentence.

    loss = - log p(tags | words),   p a chain over the tags (CRF), or independent tags

Words and tags stand between spaces, as many of the one as of the other.

Axes: B sentences, T words, N candidates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

from typing_extensions import override

from ..data import (
    Encoded,
    Example,
    Labels,
    TaggedBatch,
    WhitespaceSpec,
    collate_tagged,
    move,
)
from ..errors import DataError
from ..models import EncoderSpec, Tagger, TaggerSpec, TextEncoderSpec
from ..specs import setting
from ..steady import LEAST_ROWS
from ._answering import AbstractAnsweringTask, Answers, Search
from ._calibration import Calibration
from ._evaluation import MainMetric
from ._losses import hide, start_near_zero
from ._metrics import accuracy, exact_match, f1, span_f1
from ._prediction import Loss, PredictionSpec
from ._size_classes import settled
from ._statistics import Statistics
from ._tally import Symbols, Tally
from ._text_spec import AbstractTextSpec
from ._vocabularies import Vocabularies, located, required_target


@final
class Tagging(AbstractAnsweringTask[Tagger]):
    """Words to tags."""

    is_complete = False
    least_rows = LEAST_ROWS

    def __init__(self, spec: "TaggingSpec", vocabularies: Vocabularies, model: Tagger) -> None:
        if vocabularies.labels is None:
            raise DataError(
                "Tagging: there are no tags, expected some. "
                "Count them with spec.build_from(examples)."
            )
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self._labels: Labels = vocabularies.labels
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
        return Encoded(self.vocabularies.source.encode(words), target=numbers)

    @override
    def collate(self, examples: Sequence[Encoded]) -> TaggedBatch:
        return collate_tagged(examples)

    @override
    def loss(self, batch: TaggedBatch, state: Any = None) -> Loss:
        """Of whole sentences, counted by words."""
        batch = move(batch, self.device)
        tokens = batch.tokens
        if self.model.training:
            tokens = hide(tokens, batch.mask, self.spec.hidden)
        taggings = self.model(tokens, batch.mask)
        return Loss(-taggings.log_prob(batch.tags).sum(), batch.mask.sum())

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.spec.source.encode(example.source)

    @override
    def reference(self, example: Example) -> str:
        return " ".join(self._tags(example))

    def _tags(self, example: Example) -> list[str]:
        tags = WhitespaceSpec().encode(required_target(example))
        words = self.symbols(example)
        if len(tags) != len(words):
            with located(example):
                raise DataError(
                    f"{len(words)} words and {len(tags)} tags, expected as many of both. "
                    f"Put spaces between words and between tags, and nowhere else."
                )
        return tags

    @override
    def _searcher(self) -> Search:
        return self._search

    def _search(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        encoded = [
            Encoded(numbers, target=[0] * len(numbers))
            for numbers in (self.vocabularies.source.encode(self.symbols(e)) for e in examples)
        ]
        batch = move(collate_tagged(encoded), self.device)
        taggings = self.model(*settled(batch.tokens, batch.mask))
        best = taggings.topk(settings.width)
        # How probable each word's tag is by itself, whatever the others are.
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
    def _statistics(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        split = WhitespaceSpec().encode
        rows = [split(text) for text in references], [split(text) for text in outputs]
        found = [accuracy(*rows), f1(*rows), exact_match(references, outputs)]
        return [span_f1(*rows), *found] if self._has_spans else found


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TaggingSpec(AbstractTextSpec[Tagging]):
    """One tag for each word."""

    kind: Literal["tagging"] = "tagging"
    source: WhitespaceSpec = setting(WhitespaceSpec(), "how the sentence is cut into words")
    min_count: int = setting(1, "words seen less often in training are unknown", at_least=1)
    max_vocabulary: int | None = setting(
        None, "most words of the vocabulary, the frequent first; none: all", at_least=5
    )
    encoder: EncoderSpec = setting(TextEncoderSpec(), "what reads the sentence")
    crf: bool = setting(True, "learned transitions between neighbouring tags")
    hidden: float = setting(0.1, "share of words made unknown in training", at_least=0, at_most=1)
    prediction: PredictionSpec = setting(PredictionSpec(), "how tags are looked for")

    @override
    def build(self, vocabularies: Vocabularies) -> Tagging:
        """The task, with fresh weights."""
        model = TaggerSpec(
            vocabulary=len(vocabularies.source),
            num_tags=1 if vocabularies.labels is None else len(vocabularies.labels),
            encoder=self.encoder,
            crf=self.crf,
        )
        task = Tagging(self, vocabularies, model.build())
        start_near_zero(task.model)
        return task

    @override
    def counted(self, example: Example) -> Symbols:
        tags = WhitespaceSpec().encode(required_target(example))
        return Symbols(self.source.encode(example.source), labels=tags)

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count, max_size=self.max_vocabulary)


def has_spans(tags: Iterable[str]) -> bool:
    """Whether tags say where spans begin and go on: B-X, I-X and O, and nothing else.

    >>> has_spans(["O", "B-LOC", "I-LOC"]), has_spans(["NOUN", "VERB"]), has_spans(["O"])
    (True, False, False)
    """
    others = [tag for tag in tags if tag != "O"]
    return bool(others) and all(tag[:2] in ("B-", "I-") for tag in others)
