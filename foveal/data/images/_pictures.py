"""Images of a pool, and images as padded tensors.

An example may have an image (C, h, w), or the frames of a clip (F, C, h, w). Images are stored with one byte per value,
and an image that several examples share is stored once. A batch converts them to floats from 0 to 1.

Axes: B examples, F frames, C channels, h and w height and width, P different images.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from ...errors import ShapeError

PLACE = 8  # pixels: an image takes one position of a batch for each square of this side


@final
@dataclass(frozen=True, eq=False, slots=True)
class Pictures:
    """The images of some examples."""

    different: tuple[UInt8[Tensor, "..."], ...]
    numbers: Int[np.ndarray, " B"]  # the index of each example's image

    def take(self, rows: Int[np.ndarray, " b"]) -> "Pictures":
        """Return the images of some of the examples, in this order."""
        return Pictures(self.different, self.numbers[rows])

    def places(self) -> Int[np.ndarray, "B 3"]:
        """Return the extent of each example's image in positions: frames, rows and columns."""
        return np.array([_extent(picture) for picture in self.different])[self.numbers]

    def once(self) -> tuple[list[UInt8[Tensor, "..."]], Int[np.ndarray, " B"]]:
        """Return the different images, and for each example the index of its image."""
        numbers, which = np.unique(self.numbers, return_inverse=True)
        return [self.different[number] for number in numbers], which

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> UInt8[Tensor, "..."]:
        return self.different[int(self.numbers[row])]


class PictureColumn:
    """Collects images one at a time, and stores equal images once."""

    def __init__(self) -> None:
        self._different: list[Tensor] = []
        self._seen: dict[tuple[tuple[int, ...], bytes], int] = {}
        self._numbers: list[int] = []

    def append(self, picture: UInt8[Tensor, "..."]) -> int:
        """Add an image, and return the number of bytes of memory that it takes."""
        values = picture.contiguous().numpy().tobytes()
        key = tuple(picture.shape), hashlib.blake2b(values, digest_size=16).digest()
        number = self._seen.setdefault(key, len(self._different))
        self._numbers.append(number)
        if number < len(self._different):
            return 0
        self._different.append(picture)
        return picture.numel()

    def __len__(self) -> int:
        return len(self._numbers)

    def pictures(self) -> Pictures | None:
        """Return the collected images; None if there are none."""
        if not self._numbers:
            return None
        return Pictures(tuple(self._different), np.array(self._numbers, dtype=np.int64))


def num_places(picture: UInt8[Tensor, "..."]) -> int:
    """Return the number of positions of an image in the budget of a batch."""
    return math.prod(_extent(picture))


def _extent(picture: UInt8[Tensor, "..."]) -> tuple[int, int, int]:
    """Return the frames, rows and columns of positions of an image."""
    frames = picture.shape[0] if picture.ndim == 4 else 1
    return frames, -(-picture.shape[-2] // PLACE), -(-picture.shape[-1] // PLACE)


def collate_images(
    images: Sequence[UInt8[Tensor, "C _ _"]],
) -> tuple[Float[Tensor, "B C h w"], Bool[Tensor, "B h w"]]:
    """Collate images of different sizes into one tensor with values from 0 to 1, padded with 0 on the right and at the
    bottom, and a mask that is True on pixels.

    Args:
        images: Images with the same number of channels, with values from 0 to 255.

    Returns:
        The padded images and their mask.

    Examples:
        >>> images, mask = collate_images([torch.full((1, 2, 3), 255, dtype=torch.uint8)] * 2)
        >>> images.shape, images.max().item(), mask.all().item()
        (torch.Size([2, 1, 2, 3]), 1.0, True)
    """
    frames, mask = collate_frames([image[None] for image in images])
    return frames[:, 0], mask[:, 0]


def collate_frames(
    clips: Sequence[UInt8[Tensor, "_ C _ _"]],
) -> tuple[Float[Tensor, "B F C h w"], Bool[Tensor, "B F h w"]]:
    """Collate clips of different lengths and sizes into one tensor with values from 0 to 1, padded with 0 after the
    last frame, on the right and at the bottom, and a mask that is True on pixels.
    """
    channels = {clip.shape[1] for clip in clips}
    if len(channels) != 1:
        raise ShapeError(
            f"images of a batch must have the same number of channels, got "
            f"{sorted(channels) or 'no image'}. Read them with the same ImageSpec."
        )
    sizes = [(clip.shape[0], *clip.shape[-2:]) for clip in clips]
    longest, height, width = (max(extent) for extent in zip(*sizes, strict=True))
    padded = torch.zeros(len(clips), longest, channels.pop(), height, width, dtype=torch.uint8)
    mask = torch.zeros(len(clips), longest, height, width, dtype=torch.bool)
    for row, (clip, (f, h, w)) in enumerate(zip(clips, sizes, strict=True)):
        padded[row, :f, :, :h, :w] = clip
        mask[row, :f, :h, :w] = True
    return padded.float().div_(255), mask
