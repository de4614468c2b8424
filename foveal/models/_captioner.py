"""Captioning model: an image or a sequence of frames in, a text out.

    memory = grid of an image, or states over frames,   p(y) = prod over t of p(y_t | y_<t, memory)

References: Xu et al. 2015 (attention over an image's grid); Venugopalan et al. 2015 (video to text).

Axes: B items of a batch, C channels, h and w height and width, F frames, T output tokens.
"""

from dataclasses import dataclass
from typing import Literal, final

from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ..attention import Memory
from ..specs import check, setting
from ._checks import check_sizes
from ._encoder_decoder import AbstractEncoderDecoder, Encode
from .parts._backbone_spec import BackboneSpec
from .parts._decoder_spec import DecoderSpec
from .parts._image_spec import AbstractImageEncoderSpec
from .parts._transformer_decoder_spec import AnyDecoderSpec
from .parts._vision_specs import FramesEncoderSpec, ImageEncoderSpec


@final
class Captioner(AbstractEncoderDecoder):
    """Generates a text from an image or a sequence of frames.

    `source` holds images `(B, C, h, w)`, frames `(B, F, C, h, w)` or frame vectors `(B, F, D)`; its mask
    marks the real pixels `(B, h, w)` or the real frames `(B, F)`.

    Examples:
        >>> import torch
        >>> model = CaptionerSpec().build(vocabulary=40)
        >>> unrolled = model(torch.rand(2, 3, 32, 24), None, torch.randint(40, (2, 5)))
        >>> unrolled.log_probs.shape, unrolled.weights.shape     # a grid of 4 x 3 places
        (torch.Size([2, 5, 40]), torch.Size([2, 5, 12]))
    """

    @override
    def encode_by(
        self,
        encoder: Encode,
        source: Float[Tensor, "B ..."],
        source_mask: Bool[Tensor, "B ..."] | None,
    ) -> Memory:
        return encoder(source, source_mask)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionerSpec:
    """A model that generates a text from an image or a sequence of frames."""

    kind: Literal["captioner"] = "captioner"
    encoder: ImageEncoderSpec | FramesEncoderSpec | BackboneSpec | AbstractImageEncoderSpec = (
        setting(ImageEncoderSpec(), "encoder of an image, or of the frames of a clip")
    )
    decoder: AnyDecoderSpec = setting(DecoderSpec(), "decoder of the text", kind_optional=True)

    def build(self, *, vocabulary: int) -> Captioner:
        """Build the model with new weights.

        Args:
            vocabulary: Number of output tokens.

        Returns:
            The model, in training mode.
        """
        check(self)
        check_sizes("Captioner", vocabulary=vocabulary)
        encoder = self.encoder.build()
        decoder = self.decoder.build(vocabulary, encoder.value_size, encoder.summary_size)
        return Captioner(encoder, decoder)
