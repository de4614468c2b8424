"""Recommend a whole spec for a corpus of images, with a reason for every setting that is not a default.

    images and questions     visual question answering: the answer is one of the answers in the training set
    images and few labels    image classification
    images and other texts   captioning, where an output is correct or wrong as a whole
    images and captions      captioning, where many different outputs can be correct

The settings come from the measured recipes for easy-VQA and for captions of scenes. Photographs need more: larger
images, a pretrained encoder, and a GPU.
"""

from collections.abc import Iterable
from itertools import islice
from statistics import mean

from ..data import Example, ImageSpec, PictureQuestion
from ..errors import DataError
from ..models import (
    BilinearSpec,
    CaptionerSpec,
    DecoderSpec,
    ImageClassifierSpec,
    ImageEncoderSpec,
    SoftmaxSpec,
    TextEncoderSpec,
    VQAModelSpec,
)
from ..tasks.pictures._captioning import CaptioningSpec
from ..tasks.pictures._image_classification import ImageClassificationSpec
from ..tasks.pictures._visual_question_answering import VisualQuestionAnsweringSpec
from ._inferring import infer_tokenizer
from ._recommending import Reason, Recommendation

_MOST_SAMPLED = 10_000  # examples that are read
_SIDE = 80  # pixels
_MIN_PER_LABEL = 5  # examples, on average
_MANY_WORDS = 4  # words of a caption, on average: if longer, other captions are correct too
_SECONDS = "small enough for a CPU; for larger images, --set task.image.height=160"


def recommend_pictures(examples: Iterable[Example]) -> Recommendation:
    """Recommend a spec for training examples whose sources are images, with or without a question.

    Args:
        examples: Training examples; an iterable that can be read several times.

    Returns:
        The task, the training settings, and the reason for each choice.

    Raises:
        DataError: There are no examples, or an example has no target.
    """
    sample = list(islice(examples, _MOST_SAMPLED))
    targets = [example.target for example in sample if example.target is not None]
    if len(targets) < len(sample) or not sample:
        raise DataError(
            "expected a text, label or answer for each image, got a list with only images. Write the "
            "path of an image, a tab and a text on each line."
        )
    num = sum(1 for _ in examples)
    image = ImageSpec(height=_SIDE, width=_SIDE)
    reasons = [Reason("image", f"images of at most {_SIDE} x {_SIDE} pixels {_SECONDS}")]
    labels = set(targets)
    task: VisualQuestionAnsweringSpec | ImageClassificationSpec | CaptioningSpec
    if all(isinstance(example.source, PictureQuestion) for example in sample):
        task = _questions(image)
        kind = f"questions about images, {len(labels)} different answers"
        reasons.append(
            Reason(
                "model.encoder.sizes",
                "four stages: the receptive field has 31 pixels, enough for small shapes",
            )
        )
    elif len(labels) * _MIN_PER_LABEL <= len(targets):
        task = ImageClassificationSpec(image=image, model=_classifier())
        kind = f"labels of images, {len(labels)} different labels"
        reasons.append(
            Reason(
                "model.encoder.blocks",
                "a residual block after each stage: deeper, and no harder to train",
            )
        )
    else:
        tokenizer = infer_tokenizer(targets, side="target")
        is_free = mean(len(target.split()) for target in targets) >= _MANY_WORDS
        task = CaptioningSpec(
            image=image,
            target=tokenizer.spec,
            outputs="free" if is_free else "exact",
            model=_captioner(dropout=0.0 if num > _MOST_SAMPLED else 0.3),
            label_smoothing=0.03,
        )
        what = "captions" if is_free else "texts"
        kind = f"{what} of images, {len(labels)} different {what}"
        reasons.append(Reason("target", tokenizer.reason))
    reasons.insert(0, Reason("kind", f"{task.kind}: {kind} in {len(sample)} examples"))
    training = {
        "epochs": max(5.0, min(60.0, float(f"{20 * (10_000 / num) ** 0.5:.2g}"))),
        "batch_size": 48,
        "learning_rate": 2e-3,
        "warmup_steps": 100,
        "validation_size": 200,
    }
    why = (
        f"{num} training examples: this gives about the number of updates that measured runs needed"
    )
    return Recommendation(task, training, (*reasons, Reason("training.epochs", why)))


def _questions(image: ImageSpec) -> VisualQuestionAnsweringSpec:
    """Return the task of the recipe for questions about shapes."""
    return VisualQuestionAnsweringSpec(
        image=image,
        model=VQAModelSpec(
            encoder=ImageEncoderSpec(sizes=(16, 32, 64, 64)),
            question=TextEncoderSpec(embedding_size=32, hidden_size=32, dropout=0.0),
            hidden_size=64,
        ),
    )


def _classifier() -> ImageClassifierSpec:
    """Return a residual network whose attention shows the cells that decided."""
    return ImageClassifierSpec(
        encoder=ImageEncoderSpec(sizes=(16, 32, 64), norm="batch", blocks=1), dropout=0.1
    )


def _captioner(dropout: float) -> CaptionerSpec:
    """Return the network of the recipe for captions of scenes."""
    return CaptionerSpec(
        encoder=ImageEncoderSpec(
            sizes=(24, 48, 96, 96),
            strides=((2, 2), (2, 2), (2, 2), (1, 1)),
            positions=True,
            norm="batch",
        ),
        decoder=DecoderSpec(
            embedding_size=48,
            hidden_size=128,
            dropout=dropout,
            attention=SoftmaxSpec(scorer=BilinearSpec(scaled=True)),
        ),
    )
