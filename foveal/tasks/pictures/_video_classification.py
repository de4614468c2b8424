"""Video classification: one label for a clip; attention shows which frames decided.

    loss = - log p(label | frames)  (smoothed)

The source of an example is a `Clip`: a folder of images, a GIF or a video.

Axes: B clips, F frames, h and w height and width in pixels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
from jaxtyping import UInt8
from torch import Tensor
from typing_extensions import override

from ...attention import AttentionTrace
from ...data import Encoded, Example, ImageSpec, collate_labelled, collate_pictures
from ...data._batches import LabeledBatch, PictureBatch, move
from ...data.vocabularies._tally import Symbols, Tally
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics import AbstractMetricSpec
from ...models._video_classifier import VideoClassifier, VideoClassifierSpec
from ...specs import setting
from ..base._labeling import AbstractLabeling, Labeled, label_of, no_trace
from ..base._prediction import Loss, PredictionSpec
from ..base._task_spec import AbstractTaskSpec, Inputs
from ._pictures import AbstractView, in_ink, shown, view_of


@final
class VideoClassification(AbstractLabeling[VideoClassifier, "VideoClassificationSpec"]):
    """Classification of clips."""

    @override
    def encode(self, example: Example) -> Encoded:
        return Encoded([], target=[self._label(example)], picture=self.picture(example))

    @override
    def collate(self, examples: Sequence[Encoded]) -> PictureBatch:
        return collate_pictures(examples, collate_labelled)

    @override
    def loss(self, batch: PictureBatch, state: Any = None) -> Loss:
        """Compute the loss, summed over clips."""
        batch = move(batch, self.device)
        assert isinstance(batch.text, LabeledBatch)
        found = self.model(*in_ink(*batch.for_each()))
        return self._loss(found.log_probs, batch.text.labels, self.spec.label_smoothing)

    @override
    def symbols(self, example: Example) -> list[str]:
        """Return no tokens: a clip has none."""
        return []

    @override
    def size(self, example: Example) -> int:
        """Return the number of frames in the size class of the clip."""
        return self.view.num_places(self.picture(example))

    @cached_property
    def view(self) -> AbstractView:
        """The view that reads and pads clips."""
        spec = self.spec
        return view_of("VideoClassificationSpec", spec.image, spec.model.encoder, spec.max_frames)

    def picture(self, example: Example) -> UInt8[Tensor, "F C h w"]:
        """Return the frames of an example as model input.

        Args:
            example: Example whose source is a clip.

        Returns:
            Pixels with values from 0 to 255.
        """
        return self.view.read(self.view.input(example))

    @override
    def picture_seen(self, example: Example) -> UInt8[np.ndarray, "h w c"]:
        return shown(self.picture(example))

    @override
    def named(self, example: Example) -> str:
        return self.view.input(example).name

    @override
    def _shape(self, example: Example) -> tuple[int, ...]:
        return (self.size(example),)

    @override
    def _class(self, example: Example) -> tuple[int, ...]:
        return self.view.padded(self.picture(example))

    @override
    def _labeled(self, examples: Sequence[Example]) -> Labeled:
        clips = [self.picture(example) for example in examples]
        seen = self.view.settled(clips)
        found = self.model(*(part.to(self.device) for part in seen))
        weights, pooling = found.weights, self.spec.model.pooling
        if weights is None or isinstance(pooling, str):
            return Labeled(found.log_probs, no_trace)

        def trace(number: int, label: str) -> AttentionTrace:
            """Return the attention weight of each frame."""
            names = self.view.names(clips[number])
            return AttentionTrace(
                kind=pooling.kind,
                sources=names,
                targets=(label,),
                weights=(tuple(weights[number, : len(names)].tolist()),),
                layout=self.view.layout(clips[number]),
            )

        return Labeled(found.log_probs, trace)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class VideoClassificationSpec(AbstractTaskSpec[VideoClassification]):
    """Classification of a clip by one label."""

    kind: Literal["video_classification"] = "video_classification"
    image: ImageSpec = setting(ImageSpec(), "size and channels of the frames")
    max_frames: int = setting(16, "maximum number of frames per clip", at_least=1)
    model: VideoClassifierSpec = setting(
        VideoClassifierSpec(), "the model that scores the labels of a clip"
    )
    label_smoothing: float = setting(
        0.0,
        "label smoothing: probability that the targets spread over all labels",
        at_least=0,
        at_most=1,
    )
    metrics: tuple[AbstractMetricSpec, ...] = setting((), "additional metrics")
    prediction: PredictionSpec = setting(PredictionSpec(), "settings of prediction")

    @property
    @override
    def inputs(self) -> Inputs:
        return Inputs(text=False, picture=True)

    @override
    def build(self, vocabularies: Vocabularies) -> VideoClassification:
        """Build the task with fresh weights."""
        view_of("VideoClassificationSpec", self.image, self.model.encoder, self.max_frames)
        labels = vocabularies.labels_of("VideoClassification")
        model = self.model.build(num_classes=len(labels))
        kept = replace(self, model=replace(self.model, encoder=self.model.encoder.built()))
        return VideoClassification(kept, vocabularies, model)

    @override
    def build_from(self, examples: Iterable[Example]) -> VideoClassification:
        """Build the task with the labels of these training examples. The clips are not read."""
        counted = Tally.of(Symbols(labels=[label_of(example)]) for example in examples)
        return self.build(counted.vocabularies())
