"""The base of all encoders of images."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ...networks import AbstractEncoder
from ...specs import AbstractSpec


@dataclass(frozen=True, kw_only=True)
class AbstractImageEncoderSpec(AbstractSpec):
    """An encoder of images. Derive from it to use your encoder in captioning, in visual question answering
    and, for each frame, in video classification.
    """

    __slots__ = ()
    reads_frames: ClassVar[bool] = False  # the input is an image, not a clip

    num_channels: int  # of an image: 1 for gray, 3 for color

    @abstractmethod
    def build(self) -> AbstractEncoder:
        """Build the encoder. It reads images `(*batch, C, h, w)`, from 0 for white to 1 for black, and a mask
        `(*batch, h, w)` of their real pixels. It returns a memory with a value for each cell of a grid, row by
        row, as `grid_memory` does.
        """

    @property
    @abstractmethod
    def shrinking(self) -> tuple[int, int]:
        """The distance of neighboring cells in pixels, down and right. The grid of an image of h x w pixels has
        h / down x w / right cells, rounded up.
        """

    @property
    def is_centered(self) -> bool:
        """Whether cell (i, j) is centered on pixel (i * down, j * right), as for strided convolutions with
        padding; False for cells that are patches side by side.
        """
        return True

    def built(self) -> "AbstractImageEncoderSpec":
        """The spec that a task keeps once the encoder is built, without settings that are no longer needed,
        such as the origin of pretrained weights.
        """
        return self
