"""Specs of encoders of images and of sequences of frames."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, final

from torch import nn
from typing_extensions import override

from ...errors import ValueRangeError
from ...networks import FramesEncoder, ImageEncoder
from ...specs import setting
from ._backbone_spec import BackboneSpec
from ._image_spec import AbstractImageEncoderSpec
from ._recurrent_spec import AbstractRecurrentSpec, RecurrentSpec


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageEncoderSpec(AbstractImageEncoderSpec):
    """A small convolutional network; with `blocks`, a deeper one; with `rows`, also a recurrent network along each row
    of its grid.
    """

    kind: Literal["image"] = "image"
    num_channels: int = setting(3, "1 for gray, 3 for color", at_least=1)
    sizes: tuple[int, ...] = setting((32, 64, 128), "channels of each stage", at_least=1)
    strides: tuple[tuple[int, int], ...] | None = setting(
        None, "factors by which each stage divides height and width; none: 2 and 2", at_least=1
    )
    rows: RecurrentSpec | None = setting(
        None,
        "network that reads each row of the grid in order (Deng et al. 2017); none: no network",
    )
    positions: bool = setting(False, "add the row and the column of each pixel as channels")
    norm: Literal["layer", "batch"] = setting(
        "layer",
        "normalization over the channels of a position, or over the batch, which learns faster on mostly blank images",
    )
    blocks: int = setting(0, "blocks of two convolutions after each stage", at_least=0)
    residual: bool = setting(
        True, "each block adds its input to its output, y = x + W2 phi(W1 x) (He et al. 2016)"
    )
    kernel_size: int = setting(3, "height and width of the convolutions, odd", at_least=1)
    downsampling: Literal["stride", "max_pool", "mean_pool"] = setting(
        "stride", "how a stage divides height and width: by its stride, or by a pool after it"
    )

    @override
    def build(self) -> ImageEncoder:
        """Build the encoder."""
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
            blocks=self.blocks,
            residual=self.residual,
            kernel_size=self.kernel_size,
            downsampling=self.downsampling,
        )

    @property
    @override
    def is_centered(self) -> bool:
        return self.downsampling == "stride"

    @property
    @override
    def shrinking(self) -> tuple[int, int]:
        strides = self.strides or ((2, 2),) * len(self.sizes)
        return math.prod(down for down, _ in strides), math.prod(right for _, right in strides)


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class VectorFrameSpec:
    """Frames that are already vectors: speech features, or the outputs of another network."""

    num_channels: ClassVar[None] = None  # not an image
    shrinking: ClassVar[tuple[int, int]] = (1, 1)
    is_centered: ClassVar[bool] = True
    kind: Literal["vector"] = "vector"
    input_size: int = setting(about="width of the vector of a frame", at_least=1)
    size: int = setting(128, "width that it is brought to", at_least=1)

    def built(self) -> "VectorFrameSpec":
        """Return the spec that a task keeps after it builds the encoder.

        Returns:
            This spec, unchanged.
        """
        return self


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class FramesEncoderSpec(AbstractRecurrentSpec):
    """A vector for each frame, and a recurrent network over the frames."""

    reads_frames: ClassVar[bool] = True
    kind: Literal["frames"] = "frames"
    frame: ImageEncoderSpec | BackboneSpec | VectorFrameSpec | AbstractImageEncoderSpec = setting(
        ImageEncoderSpec(), "encoder of one frame"
    )
    regions: int = setting(
        1,
        "parts of a frame, across and down, whose largest features are read; 1: its mean",
        at_least=1,
    )
    bidirectional: bool = setting(True, "read from both ends")

    def build(self) -> FramesEncoder:
        """Build the encoder.

        Returns:
            An encoder with new weights, apart from a pretrained encoder of frames.

        Raises:
            ValueRangeError: If frames are vectors and `regions` is greater than 1.
        """
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
        """Return the spec that a task keeps after it builds the encoder.

        Returns:
            A spec whose frame encoder omits settings that are no longer needed.
        """
        return replace(self, frame=self.frame.built())

    @property
    def num_channels(self) -> int | None:
        """Return the number of channels of a frame that is an image."""
        return self.frame.num_channels

    @property
    def shrinking(self) -> tuple[int, int]:
        """Return the distance between neighboring cells of a frame in pixels, down and right."""
        return self.frame.shrinking

    @property
    def is_centered(self) -> bool:
        """Return whether the cells of a frame are centered on pixels."""
        return self.frame.is_centered
