"""Which encoder makes the memory of an image, or of a sequence of frames."""

from dataclasses import dataclass
from typing import Literal, final

from torch import nn

from ..errors import ValueRangeError
from ..networks import FramesEncoder, ImageEncoder
from ..specs import setting
from ._recurrent_spec import AbstractRecurrentSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageEncoderSpec:
    """A small convolutional network; each of its stages halves height and width."""

    kind: Literal["image"] = "image"
    num_channels: int = setting(3, "1 for grey, 3 for colour", at_least=1)
    sizes: tuple[int, ...] = setting((32, 64, 128), "channels of each stage", at_least=1)

    def build(self) -> ImageEncoder:
        """The encoder."""
        if not self.sizes:
            raise ValueRangeError(
                "ImageEncoderSpec: sizes must name at least one stage, got none. "
                "Pass, for example, sizes=(32, 64, 128)."
            )
        return ImageEncoder(self.num_channels, self.sizes)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class VectorFrameSpec:
    """A frame that is a vector already: of speech, or of a network run before."""

    kind: Literal["vector"] = "vector"
    input_size: int = setting(about="width of the vector of a frame", at_least=1)
    size: int = setting(128, "width that it is brought to", at_least=1)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class FramesEncoderSpec(AbstractRecurrentSpec):
    """A vector for each frame, and a recurrent network that reads them in order."""

    kind: Literal["frames"] = "frames"
    frame: ImageEncoderSpec | VectorFrameSpec = setting(ImageEncoderSpec(), "what a frame is")
    bidirectional: bool = setting(True, "read from both ends")

    def build(self) -> FramesEncoder:
        """The encoder."""
        if isinstance(self.frame, VectorFrameSpec):
            frame, size = nn.Linear(self.frame.input_size, self.frame.size), self.frame.size
        else:
            frame = self.frame.build()
            size = frame.summary_size
        return FramesEncoder(frame, self.stack(size, bidirectional=self.bidirectional))
