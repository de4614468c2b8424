"""The base class of image encoder specs."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ...networks import AbstractEncoder
from ...specs import AbstractSpec


@dataclass(frozen=True, kw_only=True)
class AbstractImageEncoderSpec(AbstractSpec):
    """An image encoder.

    Derive from it to use a custom encoder in captioning, in visual question answering and, for each frame,
    in video classification.
    """

    __slots__ = ()
    reads_frames: ClassVar[bool] = False  # the input is an image, not a clip

    num_channels: int  # channels per image: 1 for gray, 3 for color

    @abstractmethod
    def build(self) -> AbstractEncoder:
        """Build the encoder.

        It takes images `(*batch, C, h, w)`, from 0 for white to 1 for black, and a mask `(*batch, h, w)` of
        their real pixels. It returns a memory with a value for each cell of a grid, row by row, as
        `grid_memory` does.

        Returns:
            An encoder with new or pretrained weights.
        """

    @property
    @abstractmethod
    def shrinking(self) -> tuple[int, int]:
        """Return the distance between neighboring cells in pixels, down and right.

        The grid of an image of h x w pixels has h / down x w / right cells, rounded up.
        """

    @property
    def is_centered(self) -> bool:
        """Return whether cell (i, j) is centered on pixel (i * down, j * right).

        This is true for strided convolutions with padding, and False for adjacent patches.
        """
        return True

    def built(self) -> "AbstractImageEncoderSpec":
        """Return the spec that a task keeps after it builds the encoder.

        It omits settings that are no longer needed, such as the source of pretrained weights.

        Returns:
            A spec that builds an encoder of the same structure; by default this spec.
        """
        return self
