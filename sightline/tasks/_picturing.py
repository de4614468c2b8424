"""Pictures as tasks take them: the path of an image, or the image itself, written as a text.

    photos/cat.png                      a file; a folder, a GIF or a video where frames are read
    data:image/png;base64,iVBORw0...    what a file holds, as a page or a request sends it

To answer the same whatever else is in a batch (docs/decisions/0012), a picture is padded to a size that
follows from its own: the next multiple of 32 pixels that leaves room for one more cell of the grid.

Axes: B examples, F frames, C channels, h and w height and width.
"""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn.functional import pad

from ..attention import Layout
from ..data import Example, ImageSpec, collate_frames, collate_images, read_frames, read_image
from ..errors import DataError, ValueRangeError
from ..models import ImageEncoderSpec

INLINE = "data:"
_STEP = 32  # pixels


class Seen(NamedTuple):
    """Pictures as models are given them, and which pixels are real."""

    pictures: Float[Tensor, "B *F C h w"]  # from 0 for white to 1 for black
    mask: Bool[Tensor, "B *F h w"]


def in_ink(pictures: Float[Tensor, "B *F C h w"], mask: Bool[Tensor, "B *F h w"]) -> Seen:
    """Light turned into ink: white paper is then 0, as the padding around it is, and its edge is none."""
    return Seen((1 - pictures).masked_fill(~mask.unsqueeze(-3), 0.0), mask)


def picture_of(
    example: Example, spec: ImageSpec, max_frames: int | None = None
) -> UInt8[Tensor, "*F C h w"]:
    """The image of an example or, where frames are read, its clip."""
    source = _source(example)
    if max_frames is None:
        return read_image(source, spec)
    return read_frames(source, spec, max_frames)


def picture_name(example: Example) -> str:
    """What to call the picture of an example.

    >>> picture_name(Example("photos/cat.png")), picture_name(Example("data:image/png;base64,aaaa"))
    ('cat.png', 'image')
    """
    path = example.source.partition("\t")[0]
    return "image" if path.startswith(INLINE) else Path(path).name


def seen(pictures: Sequence[UInt8[Tensor, "*F C _ _"]]) -> Seen:
    """Pictures of any sizes in one batch."""
    collate = collate_frames if pictures[0].ndim == 4 else collate_images
    return in_ink(*collate(pictures))


class Grid(NamedTuple):
    """The cells that an encoder makes of a picture: by how much they are fewer than its pixels."""

    down: int
    right: int

    def padded(self, picture: UInt8[Tensor, "*F C h w"]) -> tuple[int, int]:
        """The height and width that a picture is padded to, by its own alone."""
        height, width = (
            -(-(size + cell) // _STEP) * _STEP
            for size, cell in zip(picture.shape[-2:], self, strict=True)
        )
        return height, width

    def settled(self, pictures: Sequence[UInt8[Tensor, "*F C _ _"]]) -> Seen:
        """Pictures of one size class, padded to its size."""
        found = seen(pictures)
        height, width = self.padded(pictures[0])
        more = (0, width - found.mask.shape[-1], 0, height - found.mask.shape[-2])
        return Seen(pad(found.pictures, more), pad(found.mask, more))

    def cells(self, mask: Bool[Tensor, "*B h w"]) -> Bool[Tensor, "*B rows columns"]:
        """Which cells are real: those centred on a real pixel."""
        return mask[..., :: self.down, :: self.right]

    def layout(self, picture: UInt8[Tensor, "*F C h w"]) -> Layout:
        """How the real cells of a picture lie."""
        height, width = picture.shape[-2:]
        return Layout("grid", -(-height // self.down), -(-width // self.right))

    def names(self, layout: Layout) -> tuple[str, ...]:
        """The row and the column of every cell, from 1 on.

        >>> Grid(8, 8).names(Layout("grid", 1, 2))
        ('1,1', '1,2')
        """
        rows, columns = range(1, (layout.rows or 0) + 1), range(1, (layout.columns or 0) + 1)
        return tuple(f"{row},{column}" for row in rows for column in columns)


def check_channels(owner: str, image: ImageSpec, encoder: ImageEncoderSpec) -> None:
    """Images are read with as many channels as the encoder takes."""
    if image.num_channels != encoder.num_channels:
        raise ValueRangeError(
            f"{owner}: image.num_channels and encoder.num_channels must be equal, got "
            f"{image.num_channels} and {encoder.num_channels}. Set both to 1 or to 3."
        )


def _source(example: Example) -> Path | bytes:
    text = example.source.partition("\t")[0]
    if not text.startswith(INLINE):
        return Path(text)
    head, comma, data = text.partition(",")
    try:
        if not (comma and head.endswith(";base64")):
            raise ValueError("no base64")
        return base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        place = f"{example.where}: " if example.where is not None else ""
        raise DataError(
            f"{place}an image given as data must be data:image/png;base64, and its bytes in base64, got "
            f"{text[:40]!r}. Give the path of a file instead."
        ) from None
