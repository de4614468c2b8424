"""Picture classifier: one label for an image, or for a sequence of frames.

    memory = cells of a grid, or states over frames,   log p(class) = log_softmax( W pool(memory) + b )

The weights of attention with one learned query show which cells or frames decided. Over frames, the attention can be
global, a softmax over all frames, or local, around one position in time.

Axes: B items of a batch, F frames, C channels, h and w height and width, S positions of the memory, K classes.
"""

from dataclasses import dataclass
from typing import Literal, final

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..attention import AttentionPooling
from ..batch_invariant import Linear
from ..networks import AbstractEncoder
from ..specs import check, setting
from ._checks import check_sizes
from ._classifier import Classified, Pool, Pooling, build_pool, pooled
from .parts._attention_specs import SoftmaxSpec
from .parts._backbone_spec import BackboneSpec
from .parts._image_spec import AbstractImageEncoderSpec
from .parts._vision_specs import FramesEncoderSpec, ImageEncoderSpec


@final
class PictureClassifier(nn.Module):
    """Computes log-probabilities of the classes from images `(B, C, h, w)` or clips `(B, F, C, h, w)`.

    Args:
        encoder: Encodes the images or the frames.
        pool: Computes one vector from all positions of the memory.
        output: Linear layer from this vector to the scores of the classes.
        dropout: Dropout probability of the pooled vector.

    Examples:
        >>> import torch
        >>> classifier = VideoClassifierSpec().build(num_classes=4)
        >>> classified = classifier(torch.rand(2, 6, 3, 16, 16))
        >>> classified.log_probs.shape, classified.weights.shape
        (torch.Size([2, 4]), torch.Size([2, 6]))
    """

    def __init__(
        self,
        encoder: AbstractEncoder,
        pool: Pool | AttentionPooling,
        output: nn.Linear,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder, self.pool, self.output = encoder, pool, output
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        pictures: Float[Tensor, "B *F C h w"],
        mask: Bool[Tensor, "B F"] | Bool[Tensor, "B *F h w"] | None = None,
    ) -> Classified:
        """Classify images or clips; the mask marks the real pixels, or the real frames of a clip."""
        vector, attended = pooled(self.pool, self.encoder(pictures, mask))
        return Classified(self.output(self.dropout(vector)).log_softmax(-1), attended)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageClassifierSpec:
    """A model that predicts one label for an image.

    Examples:
        >>> import torch
        >>> encoder = ImageEncoderSpec(sizes=(8, 16), blocks=2)
        >>> classified = ImageClassifierSpec(encoder=encoder).build(num_classes=4)(torch.rand(2, 3, 16, 16))
        >>> classified.log_probs.shape, classified.weights.shape
        (torch.Size([2, 4]), torch.Size([2, 16]))
    """

    kind: Literal["image_classifier"] = "image_classifier"
    encoder: ImageEncoderSpec | BackboneSpec | AbstractImageEncoderSpec = setting(
        ImageEncoderSpec(), "encoder of the image"
    )
    pooling: Pooling = setting(SoftmaxSpec(), "how one vector is made of all cells of the grid")
    dropout: float = setting(0.0, "dropout rate of the pooled vector", at_least=0, at_most=1)

    def build(self, *, num_classes: int) -> PictureClassifier:
        """Build the model with new weights.

        Args:
            num_classes: Number of classes.

        Returns:
            The model, in training mode.
        """
        check(self)
        return _built(self.encoder.build(), self.pooling, self.dropout, num_classes)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class VideoClassifierSpec:
    """A model that predicts one label for a clip."""

    kind: Literal["video_classifier"] = "video_classifier"
    encoder: FramesEncoderSpec = setting(FramesEncoderSpec(), "encoder of the frames")
    pooling: Pooling = setting(SoftmaxSpec(), "how one vector is made of all frames")
    dropout: float = setting(0.0, "dropout rate of the pooled vector", at_least=0, at_most=1)

    def build(self, *, num_classes: int) -> PictureClassifier:
        """Build the model with new weights.

        Args:
            num_classes: Number of classes.

        Returns:
            The model, in training mode.
        """
        check(self)
        return _built(self.encoder.build(), self.pooling, self.dropout, num_classes)


def _built(
    encoder: AbstractEncoder, pooling: Pooling, dropout: float, num_classes: int
) -> PictureClassifier:
    check_sizes("PictureClassifier", num_classes=num_classes)
    pool, size = build_pool(pooling, encoder)
    return PictureClassifier(encoder, pool, Linear(size, num_classes), dropout=dropout)
