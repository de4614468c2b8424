"""Which encoder makes the memory of an image, or of a sequence of frames."""

import math
from dataclasses import dataclass
from typing import Literal, final

from torch import nn

from ...errors import ValueRangeError
from ...networks import FramesEncoder, ImageEncoder
from ...specs import setting
from ._recurrent_spec import AbstractRecurrentSpec, RecurrentSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageEncoderSpec:
    """A small convolutional network, and with `rows` a recurrent one along each row of its grid."""

    kind: Literal["image"] = "image"
    num_channels: int = setting(3, "1 for gray, 3 for color", at_least=1)
    sizes: tuple[int, ...] = setting((32, 64, 128), "channels of each stage", at_least=1)
    strides: tuple[tuple[int, int], ...] | None = setting(
        None, "by what each stage divides height and width; none: by 2 and 2", at_least=1
    )
    rows: RecurrentSpec | None = setting(
        None,
        "network that reads each row of the grid in order (Deng et al. 2017); none: no network",
    )
    positions: bool = setting(False, "read the row and the column of each pixel beside it")
    norm: Literal["layer", "batch"] = setting(
        "layer", "over the channels of a place, or over the batch: sooner where much is blank"
    )

    def build(self) -> ImageEncoder:
        """The encoder."""
        if not self.sizes:
            raise ValueRangeError(
                "ImageEncoderSpec: sizes must name at least one stage, got none. "
                "Pass, for example, sizes=(32, 64, 128)."
            )
        return ImageEncoder(
            self.num_channels,
            self.sizes,
            strides=self.strides,
            rows=None if self.rows is None else self.rows.build(self.sizes[-1]),
            positions=self.positions,
            norm=self.norm,
        )

    def built(self) -> "ImageEncoderSpec":
        """What a task keeps of the spec once the encoder is built: all of it."""
        return self

    @property
    def shrinking(self) -> tuple[int, int]:
        """By how much the grid is smaller than the image, in height and width."""
        strides = self.strides or ((2, 2),) * len(self.sizes)
        return math.prod(down for down, _ in strides), math.prod(right for _, right in strides)


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
    regions: int = setting(
        1,
        "parts of a frame, across and down, whose largest features are read; 1: its mean",
        at_least=1,
    )
    bidirectional: bool = setting(True, "read from both ends")

    def build(self) -> FramesEncoder:
        """The encoder."""
        if isinstance(self.frame, VectorFrameSpec):
            if self.regions > 1:
                raise ValueRangeError(
                    f"FramesEncoderSpec: regions are parts of an image, got {self.regions} for frames that "
                    f"are vectors. Set regions to 1, or frame to an ImageEncoderSpec."
                )
            frame, size = nn.Linear(self.frame.input_size, self.frame.size), self.frame.size
        else:
            frame = self.frame.build()
            size = frame.value_size * self.regions**2
        stack = self.stack(size, bidirectional=self.bidirectional)
        return FramesEncoder(frame, stack, regions=self.regions)

    def built(self) -> "FramesEncoderSpec":
        """What a task keeps of the spec once the encoder is built: all of it."""
        return self

    @property
    def num_channels(self) -> int | None:
        """Those of a frame that is an image."""
        return None if isinstance(self.frame, VectorFrameSpec) else self.frame.num_channels
