"""Classification: one label for a whole text; attention shows which words decided.

    loss = - log p(label | text)  (smoothed)

Axes: B texts, S symbols, C classes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import torch
from torch.nn.functional import nll_loss
from typing_extensions import override

from ..attention import AttentionTrace
from ..data import (
    Encoded,
    Example,
    LabelledBatch,
    Labels,
    TokeniserSpec,
    Vocabulary,
    WhitespaceSpec,
    collate_labelled,
    move,
)
from ..errors import DataError
from ..models import (
    Classifier,
    ClassifierSpec,
    EncoderSpec,
    PlaceAttentionSpec,
    SoftmaxSpec,
    TextEncoderSpec,
)
from ..specs import setting
from ..steady import LEAST_ROWS
from ._answering import AbstractAnsweringTask, Answers, Search
from ._calibration import Calibration, Scaling
from ._evaluation import MainMetric
from ._losses import hide, start_near_zero
from ._metrics import accuracy, f1
from ._prediction import Loss, PredictionSpec
from ._size_classes import settled
from ._statistics import Statistics
from ._vocabularies import Survey, Vocabularies, located, numbered, required_target, trained


@final
class Classification(AbstractAnsweringTask[Classifier]):
    """Texts to labels."""

    is_complete = True
    least_rows = LEAST_ROWS

    def __init__(
        self, spec: "ClassificationSpec", vocabularies: Vocabularies, model: Classifier
    ) -> None:
        if vocabularies.labels is None:
            raise DataError(
                "Classification: there are no labels, expected some. "
                "Count them with spec.build_from(examples)."
            )
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self._labels: Labels = vocabularies.labels
        self.prediction = spec.prediction
        self.calibration = Calibration((Scaling(others=None),))

    @property
    @override
    def spec(self) -> "ClassificationSpec":
        return self._spec

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("accuracy", True)

    @override
    def encode(self, example: Example) -> Encoded:
        with located(example):
            label = self._labels.number(self.reference(example))
        return Encoded(numbered(self.vocabularies.source, self.symbols(example)), target=[label])

    @override
    def collate(self, examples: Sequence[Encoded]) -> LabelledBatch:
        return collate_labelled(examples)

    @override
    def loss(self, batch: LabelledBatch, state: Any = None) -> Loss:
        """Summed over texts."""
        batch = move(batch, self.device)
        tokens = batch.tokens
        if self.model.training:
            tokens = hide(tokens, batch.mask, self.spec.hidden)
        log_probs = self.model(tokens, batch.mask).log_probs
        total = nll_loss(log_probs, batch.labels, reduction="sum")
        if self.spec.label_smoothing:
            spread = -log_probs.mean(-1).sum()
            total = total + self.spec.label_smoothing * (spread - total)
        return Loss(total, torch.tensor(len(batch.labels), device=self.device))

    @override
    def symbols(self, example: Example) -> list[str]:
        return self.spec.source.encode(example.source)

    @override
    def reference(self, example: Example) -> str:
        return required_target(example).strip()

    @override
    def _searcher(self) -> Search:
        return self._search

    def _search(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        """All labels, by probability."""
        texts = [self.symbols(example) for example in examples]
        numbers = [Encoded(numbered(self.vocabularies.source, text), target=[0]) for text in texts]
        batch = move(collate_labelled(numbers), self.device)
        tokens, mask = settled(batch.tokens, batch.mask)
        classified = self.model(tokens, mask)
        ranked = classified.log_probs.sort(-1, descending=True)
        weights = classified.weights if settings.trace else None
        found = []
        for number, (log_probs, labels) in enumerate(
            zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True)
        ):
            names = [self._labels.names[label] for label in labels]
            trace = None
            if weights is not None and not isinstance(self.spec.pooling, str):
                row = weights[number][mask[number]].tolist()
                trace = AttentionTrace(
                    kind=self.spec.pooling.kind,
                    sources=tuple(texts[number] or [""]),
                    targets=(names[0],),
                    weights=(tuple(row),),
                )
            found.append(Answers(names, log_probs, log_probs, trace=trace))
        return found

    @override
    def _statistics(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        rows = [[text] for text in references], [[text] for text in outputs]
        return accuracy(*rows), f1(*rows)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ClassificationSpec:
    """One label for a text."""

    kind: Literal["classification"] = "classification"
    source: TokeniserSpec = setting(WhitespaceSpec(), "how the text is cut into symbols")
    min_count: int = setting(1, "symbols seen less often in training are unknown", at_least=1)
    max_vocabulary: int | None = setting(
        None, "most symbols of the vocabulary, the frequent first; none: all", at_least=5
    )
    encoder: EncoderSpec = setting(TextEncoderSpec(), "what reads the text")
    pooling: Literal["summary", "mean", "max"] | PlaceAttentionSpec = setting(
        SoftmaxSpec(), "how one vector is made of all places"
    )
    dropout: float = setting(
        0.3, "share of that vector set to 0 in training", at_least=0, at_most=1
    )
    label_smoothing: float = setting(
        0.0, "probability spread over all labels in what is learnt", at_least=0, at_most=1
    )
    hidden: float = setting(0.0, "share of symbols made unknown in training", at_least=0, at_most=1)
    prediction: PredictionSpec = setting(PredictionSpec(), "how labels are given")

    def build(self, vocabularies: Vocabularies) -> Classification:
        """The task, with fresh weights."""
        model = ClassifierSpec(
            vocabulary=len(vocabularies.source),
            num_classes=1 if vocabularies.labels is None else len(vocabularies.labels),
            encoder=self.encoder,
            pooling=self.pooling,
            dropout=self.dropout,
        )
        task = Classification(self, vocabularies, model.build())
        start_near_zero(task.model)
        return task

    def build_from(self, examples: Iterable[Example]) -> Classification:
        """The task for these training examples, which are read more than once."""
        spec = replace(self, source=trained(self.source, (e.source for e in examples)))
        survey = Survey(spec.source.encode)
        source = Vocabulary.count(
            survey.symbols(examples), min_count=spec.min_count, max_size=spec.max_vocabulary
        )
        labels = Labels.count([required_target(example).strip()] for example in examples)
        return spec.build(Vocabularies(source=source, labels=labels, rare=survey.rare()))
