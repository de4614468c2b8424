"""Visual question answering: a question about an image, answered by one label.

    loss = - log p(answer | image, question)

The source of an example is a `PictureQuestion`. Words are in lower case, without the question mark at the end.

Axes: B questions, h and w height and width in pixels, S words of the question, R positions of the grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
from jaxtyping import UInt8
from torch import Tensor
from typing_extensions import override

from ...attention import AttentionTrace
from ...data import (
    Encoded,
    Example,
    ImageSpec,
    PictureQuestion,
    WhitespaceSpec,
    collate_labelled,
    collate_pictures,
)
from ...data._batches import LabeledBatch, PictureBatch, move
from ...data.vocabularies._tally import Symbols, Tally
from ...data.vocabularies._vocabularies import Vocabularies, numbered
from ...metrics import AbstractMetricSpec
from ...models._vqa_model import VQAModel, VQAModelSpec
from ...specs import setting
from ..base._labeling import AbstractLabeling, Labeled, label_of, no_trace
from ..base._prediction import Loss, PredictionSpec
from ..base._size_classes import settled, size_class
from ..base._task_spec import Inputs
from ..base._text_spec import AbstractTextSpec
from ._pictures import AbstractView, in_ink, shown, view_of

_KIND = 2  # leading words that define the kind of a question


@final
class VisualQuestionAnswering(AbstractLabeling[VQAModel, "VisualQuestionAnsweringSpec"]):
    """Answers questions about images."""

    @override
    def encode(self, example: Example) -> Encoded:
        return Encoded(
            self._numbers(example), target=[self._label(example)], picture=self.picture(example)
        )

    @override
    def collate(self, examples: Sequence[Encoded]) -> PictureBatch:
        return collate_pictures(examples, collate_labelled)

    @override
    def loss(self, batch: PictureBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over questions."""
        batch = move(batch, self.device)
        text, seen = batch.text, in_ink(batch.pictures, batch.pictures_mask)
        assert isinstance(text, LabeledBatch)
        found = self.model(*seen, text.tokens, text.mask, batch.shown)
        return self._loss(found.log_probs, text.labels, self.spec.label_smoothing)

    @override
    def symbols(self, example: Example) -> list[str]:
        """Return the words of the question."""
        return self.spec.words(example.input_as(PictureQuestion).question)

    @override
    def kind(self, example: Example) -> str:
        """Return the first words of the question."""
        return " ".join(self.symbols(example)[:_KIND])

    @cached_property
    def view(self) -> AbstractView:
        """The view that reads and pads images."""
        return view_of("VisualQuestionAnsweringSpec", self.spec.image, self.spec.model.encoder)

    def picture(self, example: Example) -> UInt8[Tensor, "C h w"]:
        """Return the image of an example as model input.

        Args:
            example: Example whose source is a question about an image.

        Returns:
            Pixels with values from 0 to 255.
        """
        return self.view.read(example.input_as(PictureQuestion).picture)

    @override
    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"]:
        return shown(self.picture(example))

    @override
    def named(self, example: Example) -> str:
        asked = example.input_as(PictureQuestion)
        return f"{asked.picture.name}: {asked.question}"

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        return (len(self.symbols(example)),)

    @override
    def _class(self, example: Example) -> tuple[int, ...]:
        return size_class(len(self.symbols(example))), *self.view.padded(self.picture(example))

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        pictures = [self.picture(example) for example in examples]
        encoded = [Encoded(self._numbers(example), target=[0]) for example in examples]
        text = move(collate_labelled(encoded), self.device)
        seen = self.view.settled(pictures)
        found = self.model(
            *(part.to(self.device) for part in seen), *settled(text.tokens, text.mask)
        )
        weights, attention = found.weights, self.spec.model.attention
        if weights is None or attention is None:
            return Labeled(found.log_probs, no_trace)
        cells = self.view.places(seen.mask)

        def trace(number: int, label: str) -> AttentionTrace:
            """Return the attention weight of each position of the image."""
            return AttentionTrace(
                kind=attention.kind,
                sources=self.view.names(pictures[number]),
                targets=(label,),
                weights=(tuple(weights[number][cells[number]].tolist()),),
                layout=self.view.layout(pictures[number]),
            )

        return Labeled(found.log_probs, trace)

    def _numbers(self, example: Example) -> list[int]:
        return numbered(self.vocabularies.source, self.symbols(example))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class VisualQuestionAnsweringSpec(AbstractTextSpec[VisualQuestionAnswering]):
    """Visual question answering: a question about an image, answered by one label."""

    kind: Literal["visual_question_answering"] = "visual_question_answering"
    image: ImageSpec = setting(ImageSpec(), "size and channels of the images")
    source: WhitespaceSpec = setting(WhitespaceSpec(), "tokenizer of the question")
    min_count: int = setting(
        1, "words that are rarer in the training set become unknown", at_least=1
    )
    model: VQAModelSpec = setting(
        VQAModelSpec(), "the model that answers a question about an image"
    )
    label_smoothing: float = setting(
        0.0,
        "label smoothing: probability that the targets spread over all answers",
        at_least=0,
        at_most=1,
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    def words(self, question: str) -> list[str]:
        """Return the words of a question.

        Args:
            question: Text of the question.

        Returns:
            The words in lowercase, without final punctuation.

        Examples:
            >>> VisualQuestionAnsweringSpec().words("What color is the circle?")
            ['what', 'color', 'is', 'the', 'circle']
        """
        return self.source.encode(question.lower().rstrip(" .?"))

    @property
    @override
    def inputs(self) -> Inputs:
        return Inputs(picture=True)

    @override
    def build(self, vocabularies: Vocabularies) -> VisualQuestionAnswering:
        """Build the task with fresh weights."""
        view_of("VisualQuestionAnsweringSpec", self.image, self.model.encoder)
        model = self.model.build(
            vocabulary=len(vocabularies.source),
            num_answers=len(vocabularies.labels_of("VisualQuestionAnswering")),
        )
        kept = replace(self, model=replace(self.model, encoder=self.model.encoder.built()))
        return VisualQuestionAnswering(kept, vocabularies, model)

    @override
    def counted(self, example: Example) -> Symbols:
        return Symbols(
            self.words(example.input_as(PictureQuestion).question), labels=[label_of(example)]
        )

    @override
    def vocabularies(self, tally: Tally) -> Vocabularies:
        return tally.vocabularies(min_count=self.min_count)
