"""Video classification: one label for a clip; attention shows which frames decided.

    loss = - log p(label | frames)  (smoothed)

The source of an example is a `Clip`: a folder of images, a GIF or a video.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, final

from typing_extensions import override

from ...data import Example, ImageSpec
from ...data.vocabularies._tally import Symbols, Tally
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics import AbstractMetricSpec
from ...models._picture_classifier import VideoClassifierSpec
from ...specs import setting
from ..base._labeling import label_of
from ..base._prediction import PredictionSpec
from ..base._task_spec import AbstractTaskSpec, Inputs
from ._picture_labeling import AbstractPictureLabeling
from ._pictures import AbstractView, view_of


@final
class VideoClassification(AbstractPictureLabeling["VideoClassificationSpec"]):
    """Classification of clips."""

    @override
    def _build_view(self) -> AbstractView:
        spec = self.spec
        return view_of("VideoClassificationSpec", spec.image, spec.model.encoder, spec.max_frames)


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
