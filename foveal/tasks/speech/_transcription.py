r"""Transcription: generate the text of a recording of speech, with attention, with CTC, or with both.

    loss = - (1 - ctc) sum over t of log p(y_t | y_<t, x)  - ctc log p_ctc(y | x)

A prediction ranks the texts that attention finds by the same sum of both log-probabilities; with ctc = 1, a prefix search
finds them. The source of an example is an `Audio`.

References: Chan et al. 2016 (listen, attend and spell); Watanabe et al. 2017 (attention and CTC in one model).

Axes: B examples, T target positions, S positions of the memory, L labels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from typing_extensions import override

from ...attention import AttentionTrace
from ...data import (
    END,
    AudioSpec,
    Example,
    TokenizerSpec,
    WhitespaceSpec,
)
from ...data._batches import PictureBatch, move
from ...data.vocabularies._vocabularies import Vocabularies, required_target, trained
from ...errors import ValueRangeError
from ...metrics import AbstractMetricSpec
from ...metrics._metrics import exact_match, word_error_rate
from ...metrics._statistics import Statistics
from ...models import Transcriber, TranscriberSpec
from ...models._transcriber import BLANK
from ...specs import setting
from ..base._answering import Answers, Search
from ..base._evaluation import MainMetric
from ..base._prediction import Loss, PredictionSpec
from ..base._task import AbstractTask
from ..base._task_spec import AbstractTaskSpec, Inputs
from ..explaining._explanation import Explanation, Way, explanation_of
from ..pictures._picture_writing import AbstractPictureWriting, target_vocabularies
from ._ctc_alignment import Span, ctc_log_prob, emissions, num_positions, token_spans
from ._ctc_search import ctc_beam_search
from ._masking import SpecAugmentSpec, masked
from ._spectrograms import Heard, Spectrograms, heard


@final
class Transcription(AbstractPictureWriting[Transcriber, "TranscriptionSpec", Spectrograms]):
    """Transcription of recordings with a pyramidal encoder, and attention, CTC or both."""

    @property
    @override
    def main_metric(self) -> MainMetric:
        return MainMetric("wer", False)

    @override
    def source_of(self, batch: PictureBatch) -> Heard:
        source, augment = heard(*batch.for_each()), self.spec.augment
        return source if augment is None or not self.model.training else masked(source, augment)

    @override
    def loss(self, batch: PictureBatch, state: None = None) -> Loss:
        """Compute the loss, summed over target tokens, including the end token."""
        batch = move(batch, self.device)
        text, weight = self.text_of(batch), self.spec.ctc
        memory = self.model.encode(*self.source_of(batch))
        scored = self.model.decoder.score(
            text.tokens,
            text.targets,
            memory,
            text.mask,
            label_smoothing=self.spec.label_smoothing,
        )
        total, count = scored.loss.sum(), text.mask.sum()
        if not weight:
            return Loss(total, count)
        labels, mask = text.targets[:, :-1], text.mask[:, 1:]  # without the end token
        labels = labels.masked_fill(~mask, BLANK)
        log_likelihoods = self.model.ctc_log_likelihood(memory, labels, mask)
        # A text that has more labels than the recording has positions is impossible, and has no gradient.
        ctc = -log_likelihoods.masked_fill(log_likelihoods == -torch.inf, 0.0).sum()
        parts = {"likelihood": total.detach(), "ctc": ctc.detach()}
        return Loss((1 - weight) * total + weight * ctc, count, parts)

    @override
    def _build_view(self) -> Spectrograms:
        return Spectrograms(self.spec.audio, self.spec.model.encoder.step)

    @override
    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"]:
        return self.picture(example).movedim(0, -1).numpy()

    @override
    def _answers(
        self, search: Search, settings: PredictionSpec, examples: Sequence[Example]
    ) -> list[Answers]:
        """Answer examples of one size class."""
        weight = self.spec.ctc
        if not weight:
            return search(examples, settings)
        log_probs = self._position_log_probs(examples)
        if weight == 1:
            return [
                self._by_ctc(example, row, settings)
                for example, row in zip(examples, log_probs, strict=True)
            ]
        found = search(examples, settings)
        return [self._ranked(each, row) for each, row in zip(found, log_probs, strict=True)]

    def _position_log_probs(self, examples: Sequence[Example]) -> list[Float[Tensor, "S W"]]:
        """Return the log-probabilities of CTC at the real positions of each recording."""
        memory = self.model.encode(*self._settled(examples))
        assert memory.mask is not None
        log_probs = self.model.position_log_probs(memory)
        log_probs[..., BLANK + 1 : END + 1] = -torch.inf  # reserved tokens
        return [row[mask] for row, mask in zip(log_probs, memory.mask, strict=True)]

    def _by_ctc(
        self, example: Example, log_probs: Float[Tensor, "S W"], settings: PredictionSpec
    ) -> Answers:
        found = ctc_beam_search(log_probs, beam_size=settings.beam_size, blank=BLANK)
        symbols = [self.decode(each.labels, example) for each in found]
        totals = [each.log_prob for each in found]
        trace = None
        if settings.trace and symbols[0]:
            emitted = emissions(log_probs, torch.tensor(found[0].labels, device=self.device))
            weights = (emitted / emitted.sum(0, keepdim=True).clamp(min=1e-12)).T.tolist()
            trace = AttentionTrace(
                kind="ctc",
                sources=self.places(example),
                targets=tuple(symbols[0]),
                weights=tuple(map(tuple, weights)),
                layout=self.layout(example),
            )
        return Answers([self.text(each) for each in symbols], totals, totals, (), trace)

    def _ranked(self, found: Answers, log_probs: Float[Tensor, "S W"]) -> Answers:
        """Rank the texts that attention found by both models."""
        weight = self.spec.ctc
        totals = [
            (1 - weight) * total + weight * ctc_log_prob(log_probs, self._labels(text))
            for text, total in zip(found.outputs, found.log_probs, strict=True)
        ]
        order = sorted(range(len(totals)), key=lambda n: -totals[n])
        outputs, ranked = [found.outputs[n] for n in order], [totals[n] for n in order]
        if order[:1] == [0]:
            return found._replace(outputs=outputs, scores=ranked, log_probs=ranked)
        # Token probabilities and trace belong to the text that attention ranks first.
        return Answers(outputs, ranked, ranked)

    def _labels(self, text: str) -> Tensor:
        return torch.tensor(
            self._target.encode(self.spec.target.encode(text)), dtype=torch.long, device=self.device
        )

    def spans(self, example: Example) -> list[Span]:
        """Align the text of an example with its recording by CTC (forced alignment).

        Args:
            example: A recording with its text.

        Returns:
            The time span and the confidence of each token, in order.

        Raises:
            ValueRangeError: The model has no CTC, or the text has more tokens than the recording has positions.
        """
        text = required_target(example)
        tokens, labels = self.spec.target.encode(text), self._labels(text)
        if not tokens:
            return []
        needed, size = num_positions(labels), self.size(example)
        if needed > size:
            raise ValueRangeError(
                f"Transcription.spans: {len(tokens)} tokens need {needed} positions, got {size} in "
                f"{self.named(example)}. Check the text, or use fewer factors in the encoder."
            )
        with self.answering():
            log_probs = self._position_log_probs([example] * self.least_rows)[0]
            return token_spans(log_probs, tokens, labels, self.view.seconds)

    @property
    @override
    def attends(self) -> bool:
        return super().attends and self.spec.ctc < 1

    @property
    @override
    def is_forcible(self) -> bool:
        return self.spec.ctc < 1

    @override
    def explain(self, example: Example, way: Way) -> Explanation:
        """Explain an answer: the steps of the decoder, or the alignment if the model uses only CTC."""
        if self.spec.ctc == 1:
            return explanation_of(self, example, way)
        return super().explain(example, way)

    @override
    def statistics_of(
        self, references: Sequence[str], outputs: Sequence[str]
    ) -> Sequence[Statistics]:
        return word_error_rate(references, outputs), exact_match(references, outputs)


def as_transcription(task: AbstractTask[Any], why: str) -> Transcription:
    """Return the task if it transcribes recordings; otherwise raise `ValueRangeError` with the reason."""
    if isinstance(task, Transcription):
        return task
    raise ValueRangeError(f"{why}, got a model for {task.spec.kind}. Use a transcription model.")


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptionSpec(AbstractTaskSpec[Transcription]):
    """Transcription: generate the text of a recording of speech."""

    kind: Literal["transcription"] = "transcription"
    audio: AudioSpec = setting(AudioSpec(), "rate and features of the recordings")
    target: TokenizerSpec = setting(WhitespaceSpec(), "tokenizer of the target")
    min_count: int = setting(
        1, "tokens that are rarer in the training set become unknown", at_least=1
    )
    max_vocab_size: int | None = setting(
        None, "maximum vocabulary size, most frequent tokens first; none: no maximum", at_least=5
    )
    model: TranscriberSpec = setting(
        TranscriberSpec(), "the model that reads the recording and writes the target"
    )
    ctc: float = setting(
        0.0,
        "weight of CTC in the loss and in the score of a text; 0: only attention, 1: only CTC",
        at_least=0,
        at_most=1,
    )
    augment: SpecAugmentSpec | None = setting(
        None, "random masks of training spectrograms (SpecAugment); none: off"
    )
    label_smoothing: float = setting(
        0.1,
        "label smoothing: probability that the targets spread over all tokens",
        at_least=0,
        at_most=1,
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    @property
    @override
    def inputs(self) -> Inputs:
        return Inputs(text=False, picture=True, audio=True)

    @override
    def build(self, vocabularies: Vocabularies) -> Transcription:
        """Build the task with fresh weights."""
        target = vocabularies.target_of("Transcription")
        model = self.model.build(
            num_features=self.audio.num_mels, vocabulary=len(target), ctc=self.ctc > 0
        )
        return Transcription(self, vocabularies, model)

    @override
    def build_from(self, examples: Iterable[Example]) -> Transcription:
        """Build the task with fresh weights. Its vocabulary, and subwords if configured, come from the targets of these
        training examples, which are read more than once; the recordings are not read.
        """
        texts = (required_target(example) for example in examples)
        spec = replace(self, target=trained(self.target, texts))
        vocabularies = target_vocabularies(
            spec.target, examples, min_count=spec.min_count, max_size=spec.max_vocab_size
        )
        return spec.build(vocabularies)
