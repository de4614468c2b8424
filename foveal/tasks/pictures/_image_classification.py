"""Image classification: one label for an image; attention shows which cells of the image decided.

    loss = - log p(label | image)  (smoothed)

The source of an example is a `Picture`. Folders of images, one for each label, are read by `image_folders`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, final

from typing_extensions import override

from ...data import Example, ImageSpec
from ...data.vocabularies._tally import Symbols, Tally
from ...data.vocabularies._vocabularies import Vocabularies
from ...metrics import AbstractMetricSpec
from ...models._picture_classifier import ImageClassifierSpec
from ...specs import setting
from ..base._labeling import label_of
from ..base._prediction import PredictionSpec
from ..base._task_spec import AbstractTaskSpec, Inputs
from ._picture_labeling import AbstractPictureLabeling
from ._pictures import AbstractView, view_of


@final
class ImageClassification(AbstractPictureLabeling["ImageClassificationSpec"]):
    """Classification of images."""

    @override
    def _build_view(self) -> AbstractView:
        return view_of("ImageClassificationSpec", self.spec.image, self.spec.model.encoder)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageClassificationSpec(AbstractTaskSpec[ImageClassification]):
    """Classification of an image by one label.

    Examples:
        >>> from foveal.models import ImageClassifierSpec, ImageEncoderSpec
        >>> encoder = ImageEncoderSpec(sizes=(16, 32, 64), blocks=2)
        >>> ImageClassificationSpec(model=ImageClassifierSpec(encoder=encoder)).kind
        'image_classification'
    """

    kind: Literal["image_classification"] = "image_classification"
    image: ImageSpec = setting(ImageSpec(), "size and channels of the images")
    model: ImageClassifierSpec = setting(
        ImageClassifierSpec(), "the model that scores the labels of an image"
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
    def build(self, vocabularies: Vocabularies) -> ImageClassification:
        """Build the task with fresh weights."""
        view_of("ImageClassificationSpec", self.image, self.model.encoder)
        labels = vocabularies.labels_of("ImageClassification")
        model = self.model.build(num_classes=len(labels))
        kept = replace(self, model=replace(self.model, encoder=self.model.encoder.built()))
        return ImageClassification(kept, vocabularies, model)

    @override
    def build_from(self, examples: Iterable[Example]) -> ImageClassification:
        """Build the task with the labels of these training examples. The images are not read."""
        counted = Tally.of(Symbols(labels=[label_of(example)]) for example in examples)
        return self.build(counted.vocabularies())
