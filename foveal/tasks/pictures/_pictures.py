"""Pictures as task inputs: from files to padded tensors.

Predictions must not depend on the rest of the batch (docs/decisions/0012), so a picture is padded by its size only: to
the next multiple of 32 pixels that leaves room for one more cell of the grid.

Axes: B examples, F frames, C channels, h and w height and width.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from ...attention import Layout
from ...data import Clip, Example, ImageSpec, Picture, read_frames, read_image
from ...data.images._pictures import collate_frames, collate_images
from ...errors import ValueRangeError
from ...models import AbstractImageEncoderSpec, FramesEncoderSpec
from ...runtime._sizes import padded_pixels
from ..base._size_classes import size_class
from ._picture_cache import PictureCache


class Seen(NamedTuple):
    """Pictures as model input, with a mask that is True on real pixels."""

    pictures: Float[Tensor, "B *F C h w"]  # from 0 for white to 1 for black
    mask: Bool[Tensor, "B *F h w"]


def in_ink(pictures: Float[Tensor, "B *F C h w"], mask: Bool[Tensor, "B *F h w"]) -> Seen:
    """Turn light into ink: white paper becomes 0 like the padding around it, so the border has no edge."""
    return Seen((1 - pictures) * mask.unsqueeze(-3), mask)  # four times as fast as filling


class AbstractView(ABC):
    """Reads pictures for a task, pads them, and labels their positions."""

    def __init__(self) -> None:
        self._cache = PictureCache()

    @abstractmethod
    def input(self, example: Example) -> Picture | Clip:
        """Return the source of an example as a picture or a clip."""

    def read(self, source: Picture | Clip) -> UInt8[Tensor, "*F C h w"]:
        """Read an image or a clip; files are cached."""
        if isinstance(source.file, bytes):
            return self._decoded(source.file)
        return self._cache.get(source.file, partial(self._decoded, source.file))

    @abstractmethod
    def _decoded(self, source: Path | bytes) -> UInt8[Tensor, "*F C h w"]:
        """Decode a picture from a file or from its bytes."""

    @abstractmethod
    def seen(self, pictures: Sequence[UInt8[Tensor, "... _ _ _"]]) -> Seen:
        """Collate pictures of any sizes into one batch."""

    @abstractmethod
    def padded(self, picture: UInt8[Tensor, "*F C h w"]) -> tuple[int, ...]:
        """Return the padded size of a picture, which depends only on its size: frames, if any, height and width."""

    @abstractmethod
    def places(self, mask: Bool[Tensor, "B *F h w"]) -> Bool[Tensor, "B S"]:
        """Return a mask of the real positions of the memory."""

    @abstractmethod
    def num_places(self, picture: UInt8[Tensor, "*F C h w"]) -> int:
        """Return the number of positions of a padded picture."""

    @abstractmethod
    def layout(self, picture: UInt8[Tensor, "*F C h w"]) -> Layout:
        """Return the layout of the real positions of a picture."""

    @abstractmethod
    def names(self, picture: UInt8[Tensor, "*F C h w"]) -> tuple[str, ...]:
        """Return a label for each real position of a picture."""

    def settled(self, pictures: Sequence[UInt8[Tensor, "... _ _ _"]]) -> Seen:
        """Collate pictures of one size class, padded to its size."""
        found, sizes = self.seen(pictures), self.padded(pictures[0])
        missing = [size - real for size, real in zip(sizes, found.mask.shape[1:], strict=True)]
        around = [more for size in reversed(missing) for more in (0, size)]
        # The channels of a picture are between its frames and its rows, and need no padding.
        return Seen(pad(found.pictures, [*around[:4], 0, 0, *around[4:]]), pad(found.mask, around))


@final
class Grid(AbstractView):
    """Divides an image into cells; the grid has `down` times fewer rows than the image has pixels, and `right`
    times fewer columns. Cells are centered on pixels at regular intervals, or are adjacent patches.
    """

    def __init__(
        self, image: ImageSpec, down: int, right: int, *, is_centered: bool = True
    ) -> None:
        super().__init__()
        self.image, self.down, self.right, self._is_centered = image, down, right, is_centered

    @override
    def input(self, example: Example) -> Picture:
        return example.input_as(Picture)

    @override
    def _decoded(self, source: Path | bytes) -> UInt8[Tensor, "C h w"]:
        return read_image(source, self.image)

    @override
    def seen(self, pictures: Sequence[UInt8[Tensor, "_ _ _"]]) -> Seen:
        return in_ink(*collate_images(pictures))

    @override
    def padded(self, picture: UInt8[Tensor, "*F C h w"]) -> tuple[int, int]:
        height, width = picture.shape[-2:]
        return padded_pixels(height, self.down), padded_pixels(width, self.right)

    @override
    def places(self, mask: Bool[Tensor, "B h w"]) -> Bool[Tensor, "B S"]:
        """Return the cells that are centered on a real pixel."""
        return mask[..., :: self.down, :: self.right].flatten(1)

    @override
    def num_places(self, picture: UInt8[Tensor, "C h w"]) -> int:
        height, width = self.padded(picture)
        return (height // self.down) * (width // self.right)

    @override
    def layout(self, picture: UInt8[Tensor, "C h w"]) -> Layout:
        height, width = picture.shape[-2:]
        pitch = (self.down, self.right) if self._is_centered else None
        return Layout("grid", -(-height // self.down), -(-width // self.right), pitch)

    @override
    def names(self, picture: UInt8[Tensor, "C h w"]) -> tuple[str, ...]:
        """Return the row and the column of each cell, counted from 1."""
        layout = self.layout(picture)
        rows, columns = range(1, (layout.rows or 0) + 1), range(1, (layout.columns or 0) + 1)
        return tuple(f"{row},{column}" for row in rows for column in columns)


@final
class Reel(AbstractView):
    """Reads a clip as frames; a grid pads the pixels of each frame."""

    def __init__(self, grid: Grid, max_frames: int) -> None:
        super().__init__()
        self.grid, self.max_frames = grid, max_frames

    @override
    def input(self, example: Example) -> Clip:
        return example.input_as(Clip)

    @override
    def _decoded(self, source: Path | bytes) -> UInt8[Tensor, "F C h w"]:
        return read_frames(source, self.grid.image, self.max_frames)

    @override
    def seen(self, pictures: Sequence[UInt8[Tensor, "_ _ _ _"]]) -> Seen:
        return in_ink(*collate_frames(pictures))

    @override
    def padded(self, picture: UInt8[Tensor, "F C h w"]) -> tuple[int, ...]:
        return self.num_places(picture), *self.grid.padded(picture)

    @override
    def places(self, mask: Bool[Tensor, "B F h w"]) -> Bool[Tensor, "B F"]:
        return mask.flatten(2).any(-1)

    @override
    def num_places(self, picture: UInt8[Tensor, "F C h w"]) -> int:
        return size_class(len(picture))

    @override
    def layout(self, picture: UInt8[Tensor, "F C h w"]) -> Layout:
        return Layout("grid", 1, len(picture))  # one row of frames

    @override
    def names(self, picture: UInt8[Tensor, "F C h w"]) -> tuple[str, ...]:
        return tuple(f"frame {number}" for number in range(1, len(picture) + 1))


def view_of(
    owner: str,
    image: ImageSpec,
    encoder: AbstractImageEncoderSpec | FramesEncoderSpec,
    max_frames: int = 16,
) -> AbstractView:
    """Return the view for this image spec and encoder; `owner` names the spec in error messages."""
    if encoder.num_channels is None:
        raise ValueRangeError(
            f"{owner}: frames are images, got an encoder of vectors. Set encoder.frame to image."
        )
    if image.num_channels != encoder.num_channels:
        raise ValueRangeError(
            f"{owner}: image.num_channels and encoder.num_channels must be equal, got "
            f"{image.num_channels} and {encoder.num_channels}. Set both to 1 or to 3."
        )
    if (image.trim or image.ink is not None) and encoder.reads_frames:
        raise ValueRangeError(
            f"{owner}: the frames of a clip must have one size, got image.trim "
            f"{str(image.trim).lower()} and image.ink {image.ink or 'none'}. Set image.trim to false "
            f"and image.ink to none."
        )
    grid = Grid(image, *encoder.shrinking, is_centered=encoder.is_centered)
    return Reel(grid, max_frames) if encoder.reads_frames else grid


def shown(picture: UInt8[Tensor, "*F C h w"]) -> UInt8[np.ndarray, "h W c"]:
    """Convert a picture for display: channels last, and the frames of a clip side by side."""
    pixels = picture.movedim(-3, -1).numpy()
    return np.concatenate(pixels, axis=1) if pixels.ndim == 4 else pixels
