"""Images as pixels: read with limits, since an image may come from anybody.

    bytes -> format, from the first of them -> size, from the header -> pixels -> upright, no larger
    than wanted, gray or color

Nothing is decoded before its header says that it is small enough, and no decoder is asked that is not
in the list below. Whatever a decoder has to say becomes one line about the file.

Axes: C channels, h and w height and width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal, final

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageChops
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile
from torch import Tensor

from ...errors import ImageError
from ...specs import setting
from ._bytes import image_bytes, image_error
from ._headers import Outline, gif_outline, webp_outline

# What a file is, is seen from its first bytes, whatever its name.
_DECODERS: tuple[tuple[bytes, bytes, Callable[[BytesIO], ImageFile]], ...] = (
    (b"\x89PNG\r\n\x1a\n", b"", PngImageFile),
    (b"\xff\xd8\xff", b"", JpegImageFile),
    (b"GIF87a", b"", GifImageFile),
    (b"GIF89a", b"", GifImageFile),
    (b"BM", b"", BmpImageFile),
    (b"RIFF", b"WEBP", WebPImageFile),
)
_FORMATS = "PNG, JPEG, GIF, BMP or WebP"
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")  # of files that are taken for images
_FOREIGN = {
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"%PDF": "PDF",
    b"<svg": "SVG",
    b"<?xml": "XML, perhaps SVG",
    b"PK\x03\x04": "a zip archive",
    b"version https://git-lfs": "a pointer of Git LFS to an image that was not fetched",
}
_WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")
_ORIENTATION = 0x0112  # the number of the EXIF tag
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LIES_DOWN = 5  # orientations from here on exchange height and width
# Decoders take time for every row: 130 KB of PNG can hold 2^25 rows of one pixel, which take seconds.
# JPEG has no larger sides.
_MOST_SIDE = 65_535
_SPECK, _RIM = 24, 2  # what a margin may differ by, and how many pixels of it stay


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSpec:
    """How images are read. Those larger than height x width are shrunk, keeping their shape; smaller
    ones stay as they are.
    """

    num_channels: Literal[1, 3] = setting(3, "1 for gray, 3 for color")
    height: int = setting(224, "rows of pixels at most; a higher image is shrunk", at_least=1)
    width: int = setting(224, "columns of pixels at most; a wider image is shrunk", at_least=1)
    trim: bool = setting(False, "cut off margins of one color, as of a page, before it is shrunk")
    ink: float | None = setting(
        None,
        "shrink writing of which less than this share is ink, in proportion, and darken it again: then letters "
        "are of about one size, if all was written with one pen; none: not at all",
        above=0,
        at_most=1,
    )
    max_pixels: int = setting(
        1 << 25, "pixels of an image before it is shrunk; a larger one is refused", at_least=1
    )
    max_bytes: int = setting(1 << 25, "bytes of a file; a larger one is refused", at_least=1)


def read_image(source: Path | bytes, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """The pixels of an image: upright, transparent parts white, the first picture of a moving one.

    Args:
        source: a file, a member of a zip archive (`photos.zip/cat.png`), or what a file holds.
        spec: which size and how many channels to bring it to, and what to refuse.

    Raises:
        ImageError: it is no image, of a format that is not read, damaged or too large.
    """
    place = source if isinstance(source, Path) else "the image"
    data = image_bytes(source, spec.max_bytes)
    opened = open_image(data, place, spec)
    return read_picture(opened, place, spec)


def open_image(data: bytes, place: object, spec: ImageSpec) -> ImageFile:
    """An image whose header is read, and whose size is allowed."""
    decoder = next(
        (
            new
            for first, second, new in _DECODERS
            if data.startswith(first) and second in data[8:12]
        ),
        None,
    )
    if decoder is None:
        raise _foreign(data, place)
    outline = image_outline(data)
    if outline is not None:
        check_size((outline.width, outline.height), place, spec)
    try:
        opened = decoder(BytesIO(data))
    except Exception as error:  # a decoder may raise anything about bytes that it did not expect
        raise damaged(error, place) from None
    check_size(opened.size, place, spec)
    return opened


def image_outline(data: bytes) -> Outline | None:
    """What the header says, where a decoder must not be asked first."""
    if data.startswith(b"GIF"):
        return gif_outline(data)
    return webp_outline(data) if data.startswith(b"RIFF") else None


def check_size(size: tuple[int, int], place: object, spec: ImageSpec) -> None:
    """Refuse an image with too many pixels, or none."""
    width, height = size
    if not (width > 0 and height > 0 and width * height <= spec.max_pixels):
        raise image_error(
            place,
            f"{width:,} x {height:,} pixels, expected at least one and at most {spec.max_pixels:,}",
            "Shrink it, or raise max_pixels",
        )
    if max(width, height) > _MOST_SIDE:
        raise image_error(
            place,
            f"{width:,} x {height:,} pixels, expected sides of at most {_MOST_SIDE:,}",
            "Cut it into pieces",
        )


def read_picture(opened: ImageFile, place: object, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """The pixels of the picture that an opened image stands at."""
    try:
        return _pixels(opened, place, spec)
    except ImageError:
        raise
    except Exception as error:  # as above
        raise damaged(error, place) from None


def _pixels(opened: ImageFile, place: object, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    # A JPEG is decoded at a half, a quarter or an eighth where that is large enough still. Which way
    # up it is, is not known yet, so the larger side has to do for both.
    most = max(spec.width, spec.height)
    # What trimming leaves of it may be small, and lines are as wide as they are in the whole of it.
    if not spec.trim and spec.ink is None:
        opened.draft(None, (most, most))
    opened.load()
    check_size(opened.size, place, spec)  # a GIF can grow while it is read
    return picture_pixels(opened, spec)


def picture_pixels(opened: Image.Image, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """What is decoded, as it is wanted."""
    turn = _orientation(opened)
    lies = turn >= _LIES_DOWN
    most = (spec.height, spec.width) if lies else (spec.width, spec.height)
    plain = _plain(opened)
    image = _trimmed(plain) if spec.trim else plain
    scale = 1.0 if spec.ink is None else min(1.0, _ink(image) / spec.ink)
    image = _on_white(_shrunk(image, most, scale))
    if turn in _TURNS:
        image = image.transpose(_TURNS[turn])
    image = image.convert("L" if spec.num_channels == 1 else "RGB")
    if spec.ink is not None:
        image = _darkened(image)
    array = np.array(image, dtype=np.uint8)  # a copy, which the tensor may keep
    channels = array[None] if spec.num_channels == 1 else array.transpose(2, 0, 1)
    return torch.from_numpy(np.ascontiguousarray(channels))


def _plain(image: Image.Image) -> Image.Image:
    """The image as L, RGB or RGBA with 8 bits for each."""
    is_plain = image.mode in ("L", "RGB") and "transparency" not in image.info
    if is_plain or image.mode == "RGBA":
        return image
    if image.mode.startswith("I"):  # 16 bits of gray: the upper 8 of them
        return Image.fromarray((np.asarray(image).clip(0, 0xFFFF) >> 8).astype(np.uint8))
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _on_white(image: Image.Image) -> Image.Image:
    """L or RGB, transparent parts white."""
    if image.mode != "RGBA":
        return image
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image).convert("RGB")


def _trimmed(image: Image.Image) -> Image.Image:
    """The part that differs from the color of the first pixel, and a little around it; all of an image
    that has no such part.
    """
    seen = _on_white(image)
    ground = Image.new(seen.mode, seen.size, seen.getpixel((0, 0)) or 0)
    differs = ImageChops.difference(seen, ground)
    is_more = [255 * (value > _SPECK) for value in range(256)]
    found = differs.point(is_more * len(differs.getbands())).getbbox()
    if found is None:
        return image
    left, top, right, bottom = found
    width, height = image.size
    box = (
        max(0, left - _RIM),
        max(0, top - _RIM),
        min(width, right + _RIM),
        min(height, bottom + _RIM),
    )
    return image.crop(box)


def _ink(image: Image.Image) -> float:
    """How dark an image is, from 0 to 1. Lines are as wide as the pen whatever is written: twice the letter has
    twice the ink on four times the page.
    """
    return 1 - float(np.asarray(_on_white(image).convert("L")).mean()) / 255


def _darkened(image: Image.Image) -> Image.Image:
    """With black where it is darkest: of thin lines shrinking leaves a little gray."""
    least, _ = image.convert("L").getextrema()
    assert isinstance(least, int)
    table = [
        round(255 - min(255.0, (255 - value) * 255 / max(1, 255 - least))) for value in range(256)
    ]
    return image.point(table * len(image.getbands()))


def _shrunk(image: Image.Image, most: tuple[int, int], scale: float) -> Image.Image:
    """By `scale`, and no larger than `most`, of the same shape; a line of pixels is left at least."""
    width, height = image.size
    scale = min(scale, most[0] / width, most[1] / height)
    if scale == 1:
        return image
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0)


def _orientation(opened: Image.Image) -> int:
    """How the image lies, by its EXIF; 1 where that says nothing, or cannot be read."""
    try:
        return int(opened.getexif().get(_ORIENTATION, 1))
    except Exception:  # what is broken is not the picture
        return 1


def _foreign(data: bytes, place: object) -> ImageError:
    begins = data[:64].lstrip()
    kind = next((kind for first, kind in _FOREIGN.items() if begins.startswith(first)), None)
    got = "empty" if not data else kind or f"of no known format, beginning with {data[:8].hex(' ')}"
    return image_error(place, f"the file is {got}, expected {_FORMATS}")


def damaged(error: Exception, place: object) -> ImageError:
    """What a decoder said, on one line."""
    said = " ".join(str(error).split())[:120] or type(error).__name__
    return image_error(place, f"the image is damaged ({said})", "Fetch it again, or leave it out")
