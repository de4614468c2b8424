"""A user-defined task: predict the length of a text, up to a limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from foveal.data import Encoded, Example, Symbols, Tally, Vocabularies
from foveal.metrics import AbstractMetricSpec, Calibration, Statistics, accuracy
from foveal.specs import setting
from foveal.tasks import (
    AbstractAnsweringTask,
    AbstractTextSpec,
    Answers,
    Loss,
    MainMetric,
    PredictionSpec,
)


class Counter(nn.Module):
    """Sum learned weights of tokens, and score each length by its distance to the sum."""

    def __init__(self, vocabulary: int, most: int) -> None:
        super().__init__()
        self.weight = nn.Embedding(vocabulary, 1)
        self.most = most

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return log-probabilities of the lengths 0 to `most`."""
        total = (self.weight(tokens).squeeze(-1) * mask).sum(-1, keepdim=True)
        lengths = torch.arange(self.most + 1, device=tokens.device)
        return (-((total - lengths) ** 2)).log_softmax(-1)


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts and their lengths."""

    tokens: Tensor
    mask: Tensor
    labels: Tensor
    indices: Tensor

    @property
    def num_inputs(self) -> int:
        """Count the tokens of the batch."""
        return int(self.mask.sum())


@final
class Length(AbstractAnsweringTask[Counter]):
    """Predict the lengths of texts."""

    is_complete = True

    def __init__(self, spec: "LengthSpec", vocabularies: Vocabularies, model: Counter) -> None:
        self._spec, self.vocabularies, self.model = spec, vocabularies, model
        self.prediction, self.calibration = spec.prediction, Calibration()

    @property
    def spec(self) -> "LengthSpec":
        """Return the spec of the task."""
        return self._spec

    @property
    def main_metric(self) -> MainMetric:
        """Return the accuracy of the lengths."""
        return MainMetric("accuracy", True)

    def symbols(self, example: Example) -> list[str]:
        """Split a text into letters."""
        return list(example.text)

    def reference(self, example: Example) -> str:
        """Return the reference length."""
        return str(int(example.target or "0"))

    def encode(self, example: Example) -> Encoded:
        """Encode the letters and the length."""
        numbers = self.vocabularies.source.encode(self.symbols(example))
        return Encoded(numbers, target=[int(self.reference(example))])

    def collate(self, examples: Sequence[Encoded]) -> Batch:
        """Build a batch."""
        size = max(1, *(len(example.source) for example in examples))
        tokens = torch.zeros(len(examples), size, dtype=torch.long)
        mask = torch.zeros(len(examples), size, dtype=torch.bool)
        for row, example in enumerate(examples):
            tokens[row, : len(example.source)] = torch.tensor(list(example.source))
            mask[row, : len(example.source)] = True
        labels = torch.tensor([min(example.target[0], self.model.most) for example in examples])
        indices = torch.tensor([example.index for example in examples])
        return Batch(tokens, mask, labels, indices)

    def loss(self, batch: Batch, state: Any = None) -> Loss:
        """Compute the loss of the reference lengths."""
        log_probs = self.model(batch.tokens.to(self.device), batch.mask.to(self.device))
        total = nll_loss(log_probs, batch.labels.to(self.device), reduction="sum")
        return Loss(total, torch.tensor(len(batch.labels), device=self.device))

    def searcher(self) -> Any:
        """Return a function that predicts a batch of examples of one size."""
        return self._answers

    def _answers(self, examples: Sequence[Example], settings: PredictionSpec) -> list[Answers]:
        batch = self.collate([self.encode(Example(one.source, "0")) for one in examples])
        log_probs = self.model(batch.tokens.to(self.device), batch.mask.to(self.device))
        ranked = log_probs.sort(-1, descending=True)
        rows = zip(ranked.values.tolist(), ranked.indices.tolist(), strict=True)
        return [Answers([str(n) for n in names], values, values) for values, names in rows]

    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        """Compute the accuracy."""
        return (accuracy([[one] for one in references], [[one] for one in outputs]),)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LengthSpec(AbstractTextSpec[Length]):
    """Predict the length of a text."""

    kind: Literal["length"] = "length"
    most: int = setting(12, "longest length that is told", at_least=1)
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "how lengths are given")

    def counted(self, example: Example) -> Symbols:
        """Letters need a vocabulary."""
        return Symbols(list(example.text))

    def vocabularies(self, tally: Tally) -> Vocabularies:
        """Build the vocabulary of letters."""
        return tally.vocabularies()

    def build(self, vocabularies: Vocabularies) -> Length:
        """Build the task."""
        return Length(self, vocabularies, Counter(len(vocabularies.source), self.most))
