"""Pictures of a pool, and pictures as padded tensors.

An example may have a picture: an image (C, h, w), or the frames of a clip (F, C, h, w). Pictures are kept as bytes, one for
each value, and once however many examples show the same; a batch makes numbers from 0 to 1 of them.

Axes: B examples, F frames, C channels, h and w height and width, P different pictures.
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

PLACE = 8  # pixels: a picture takes as many places of a batch as squares of this side cover it


@final
@dataclass(frozen=True, eq=False, slots=True)
class Pictures:
    """The pictures of some examples."""

    different: tuple[UInt8[Tensor, "..."], ...]
    numbers: Int[np.ndarray, " B"]  # which of them each example has

    def take(self, rows: Int[np.ndarray, " b"]) -> "Pictures":
        """Those of some of the examples, in this order."""
        return Pictures(self.different, self.numbers[rows])

    def places(self) -> Int[np.ndarray, "B 3"]:
        """Frames, rows and columns of places of each example's picture."""
        return np.array([_extent(picture) for picture in self.different])[self.numbers]

    def once(self) -> tuple[list[UInt8[Tensor, "..."]], Int[np.ndarray, " B"]]:
        """Each picture that some example has, once, and which of these each example has."""
        numbers, which = np.unique(self.numbers, return_inverse=True)
        return [self.different[number] for number in numbers], which

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> UInt8[Tensor, "..."]:
        return self.different[int(self.numbers[row])]


class PictureColumn:
    """Grows by one picture at a time; what is the same is kept once."""

    def __init__(self) -> None:
        self._different: list[Tensor] = []
        self._seen: dict[tuple[tuple[int, ...], bytes], int] = {}
        self._numbers: list[int] = []

    def append(self, picture: UInt8[Tensor, "..."]) -> int:
        """Add a picture; how many bytes that takes."""
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
        """What was added; None if it was nothing."""
        if not self._numbers:
            return None
        return Pictures(tuple(self._different), np.array(self._numbers, dtype=np.int64))


def num_places(picture: UInt8[Tensor, "..."]) -> int:
    """What a picture takes of the budget of a batch."""
    return math.prod(_extent(picture))


def _extent(picture: UInt8[Tensor, "..."]) -> tuple[int, int, int]:
    """Frames, rows and columns of places."""
    frames = picture.shape[0] if picture.ndim == 4 else 1
    return frames, -(-picture.shape[-2] // PLACE), -(-picture.shape[-1] // PLACE)


def collate_images(
    images: Sequence[UInt8[Tensor, "C _ _"]],
) -> tuple[Float[Tensor, "B C h w"], Bool[Tensor, "B h w"]]:
    """Images of several sizes as one tensor, from 0 to 1, with 0 to the right of each and below it;
    and a mask that is True on its pixels.

    >>> images, mask = collate_images([torch.full((1, 2, 3), 255, dtype=torch.uint8)] * 2)
    >>> images.shape, images.max().item(), mask.all().item()
    (torch.Size([2, 1, 2, 3]), 1.0, True)
    """
    frames, mask = collate_frames([image[None] for image in images])
    return frames[:, 0], mask[:, 0]


def collate_frames(
    clips: Sequence[UInt8[Tensor, "_ C _ _"]],
) -> tuple[Float[Tensor, "B F C h w"], Bool[Tensor, "B F h w"]]:
    """Clips of several lengths and sizes as one tensor, from 0 to 1, with 0 after each frame, to the
    right of it and below it; and a mask that is True on its pixels.
    """
    channels = {clip.shape[1] for clip in clips}
    if len(channels) != 1:
        raise ShapeError(
            f"collate_images: pictures must have one number of channels, got "
            f"{sorted(channels) or 'no picture'}. Read them with the same ImageSpec."
        )
    sizes = [(clip.shape[0], *clip.shape[-2:]) for clip in clips]
    longest, height, width = (max(extent) for extent in zip(*sizes, strict=True))
    padded = torch.zeros(len(clips), longest, channels.pop(), height, width, dtype=torch.uint8)
    mask = torch.zeros(len(clips), longest, height, width, dtype=torch.bool)
    for row, (clip, (f, h, w)) in enumerate(zip(clips, sizes, strict=True)):
        padded[row, :f, :, :h, :w] = clip
        mask[row, :f, :h, :w] = True
    return padded.float().div_(255), mask
