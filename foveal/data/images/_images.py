"""Read images as pixels.

The code is in `foveal.runtime`, so an exported model reads the same pixels without torch.

Axes: C channels, h and w height and width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import torch
from jaxtyping import UInt8
from PIL import Image
from PIL.ImageFile import ImageFile
from torch import Tensor

from ...errors import ImageError
from ...runtime.images import _pixels
from ...specs import setting
from ._bytes import IMAGE, image_error, media_bytes

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")  # extensions of image files


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSpec:
    """Settings for reading images. Images larger than height x width are downscaled with their aspect ratio; smaller
    images keep their size.
    """

    num_channels: Literal[1, 3] = setting(3, "number of channels: 1 for gray, 3 for color")
    height: int = setting(224, "maximum height in pixels; a higher image is resized", at_least=1)
    width: int = setting(224, "maximum width in pixels; a wider image is resized", at_least=1)
    trim: bool = setting(False, "crop margins of one color before resizing")
    ink: float | None = setting(
        None,
        "resize handwriting whose fraction of ink is below this value, in proportion, and darken it "
        "again: letters then have about the same size, if all were written with one pen; none: off",
        above=0,
        at_most=1,
    )
    max_pixels: int = setting(
        1 << 25, "maximum number of pixels before resizing; a larger image is an error", at_least=1
    )
    max_bytes: int = setting(
        1 << 25, "maximum file size in bytes; a larger file is an error", at_least=1
    )


def read_image(source: Path | bytes, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """Read the pixels of an image: upright, on a white background, and the first frame of an animation.

    Args:
        source: A file, a member of a zip archive (`photos.zip/cat.png`), or the content of a file.
        spec: The maximum size, the number of channels, and the limits.

    Returns:
        The pixels, with values from 0 to 255.

    Raises:
        ImageError: The file is not an image, has an unsupported format, is damaged or too large.
    """
    place = source if isinstance(source, Path) else "the image"
    data = media_bytes(source, spec.max_bytes, IMAGE)
    opened = open_image(data, place, spec)
    return read_picture(opened, place, spec)


def open_image(data: bytes, place: object, spec: ImageSpec) -> ImageFile:
    """Open an image by reading its header, and check its size."""
    with _at(place):
        return _pixels.open_image(data, spec)


def check_size(size: tuple[int, int], place: object, spec: ImageSpec) -> None:
    """Raise an error for an image with too many pixels, or none."""
    with _at(place):
        _pixels.check_size(size, spec)


def read_picture(opened: ImageFile, place: object, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """Read the pixels of the current frame of an opened image."""
    with _at(place):
        return torch.from_numpy(_pixels.read_picture(opened, spec))


def picture_pixels(opened: Image.Image, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """Convert a decoded image to pixels of the requested size and channels."""
    return torch.from_numpy(_pixels.picture_pixels(opened, spec))


def damaged(error: Exception, place: object) -> ImageError:
    """Convert an exception of a decoder to a one-line error."""
    found = _pixels.damaged(error)
    return image_error(place, found.what, found.remedy)


@contextmanager
def _at(place: object) -> Iterator[None]:
    """Add the name of the file to errors."""
    try:
        yield
    except _pixels.UnreadableImageError as error:
        raise image_error(place, error.what, error.remedy) from None
