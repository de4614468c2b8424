"""Read images as pixels, with limits, because an image may come from an untrusted source.

    bytes -> format, from the first bytes -> size, from the header -> pixels -> upright, at most
    the maximum size, gray or color

An image is decoded only if its header shows an acceptable size, and only with a decoder from the list below. Every
error of a decoder becomes a one-line message about the file.

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
from ._bytes import IMAGE, image_error, media_bytes
from ._headers import Outline, gif_outline, webp_outline

# The first bytes determine the format of a file, not its name.
_DECODERS: tuple[tuple[bytes, bytes, Callable[[BytesIO], ImageFile]], ...] = (
    (b"\x89PNG\r\n\x1a\n", b"", PngImageFile),
    (b"\xff\xd8\xff", b"", JpegImageFile),
    (b"GIF87a", b"", GifImageFile),
    (b"GIF89a", b"", GifImageFile),
    (b"BM", b"", BmpImageFile),
    (b"RIFF", b"WEBP", WebPImageFile),
)
_FORMATS = "PNG, JPEG, GIF, BMP or WebP"
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")  # extensions of image files
_FOREIGN = {
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"%PDF": "PDF",
    b"<svg": "SVG",
    b"<?xml": "XML, perhaps SVG",
    b"PK\x03\x04": "a zip archive",
    b"version https://git-lfs": "a Git LFS pointer to an image that was not downloaded",
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
# The time of decoders depends on the number of rows: 130 KB of PNG can contain 2^25 rows of one pixel, which take
# seconds. JPEG allows no larger sides.
_MOST_SIDE = 65_535
_SPECK, _RIM = 24, 2  # maximum difference within a margin, and pixels of the margin to keep


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
    except Exception as error:  # a decoder may raise anything for unexpected bytes
        raise damaged(error, place) from None
    check_size(opened.size, place, spec)
    return opened


def image_outline(data: bytes) -> Outline | None:
    """Parse the header of formats whose decoders must not run before the size is checked."""
    if data.startswith(b"GIF"):
        return gif_outline(data)
    return webp_outline(data) if data.startswith(b"RIFF") else None


def check_size(size: tuple[int, int], place: object, spec: ImageSpec) -> None:
    """Raise an error for an image with too many pixels, or none."""
    width, height = size
    if not (width > 0 and height > 0 and width * height <= spec.max_pixels):
        raise image_error(
            place,
            f"{width:,} x {height:,} pixels, expected from 1 to {spec.max_pixels:,} pixels",
            "Resize it, or increase max_pixels",
        )
    if max(width, height) > _MOST_SIDE:
        raise image_error(
            place,
            f"{width:,} x {height:,} pixels, expected sides of at most {_MOST_SIDE:,}",
            "Cut it into pieces",
        )


def read_picture(opened: ImageFile, place: object, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """Read the pixels of the current frame of an opened image."""
    try:
        return _pixels(opened, place, spec)
    except ImageError:
        raise
    except Exception as error:  # as above
        raise damaged(error, place) from None


def _pixels(opened: ImageFile, place: object, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    # A JPEG can be decoded at 1/2, 1/4 or 1/8 of its size if that is still large enough. Its orientation is not
    # known yet, so use the larger side for both.
    most = max(spec.width, spec.height)
    # Trimming may leave a small part, and the width of lines is measured at full size.
    if not spec.trim and spec.ink is None:
        opened.draft(None, (most, most))
    opened.load()
    check_size(opened.size, place, spec)  # the size of a GIF can grow while it is read
    return picture_pixels(opened, spec)


def picture_pixels(opened: Image.Image, spec: ImageSpec) -> UInt8[Tensor, "C h w"]:
    """Convert a decoded image to pixels of the requested size and channels."""
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
    """Convert an image to L, RGB or RGBA with 8 bits per channel."""
    is_plain = image.mode in ("L", "RGB") and "transparency" not in image.info
    if is_plain or image.mode == "RGBA":
        return image
    if image.mode.startswith("I"):  # 16-bit gray: keep the upper 8 bits
        return Image.fromarray((np.asarray(image).clip(0, 0xFFFF) >> 8).astype(np.uint8))
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        return image.convert("RGBA")
    return image.convert("L" if image.mode == "1" else "RGB")


def _on_white(image: Image.Image) -> Image.Image:
    """Convert an image to L or RGB, on a white background."""
    if image.mode != "RGBA":
        return image
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image).convert("RGB")


def _trimmed(image: Image.Image) -> Image.Image:
    """Crop an image to the part that differs from the color of the first pixel, with a small margin. An image without
    such a part stays unchanged.
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
    """Return the darkness of an image, from 0 to 1. The width of a pen stroke is constant: a letter of twice the size
    has twice the ink on four times the area.
    """
    return 1 - float(np.asarray(_on_white(image).convert("L")).mean()) / 255


def _darkened(image: Image.Image) -> Image.Image:
    """Stretch the contrast to make the darkest pixel black, because downscaling turns thin lines light gray."""
    least, _ = image.convert("L").getextrema()
    assert isinstance(least, int)
    table = [
        round(255 - min(255.0, (255 - value) * 255 / max(1, 255 - least))) for value in range(256)
    ]
    return image.point(table * len(image.getbands()))


def _shrunk(image: Image.Image, most: tuple[int, int], scale: float) -> Image.Image:
    """Scale an image by `scale`, to at most `most`, with its aspect ratio and at least one pixel on each side."""
    width, height = image.size
    scale = min(scale, most[0] / width, most[1] / height)
    if scale == 1:
        return image
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0)


def _orientation(opened: Image.Image) -> int:
    """Return the EXIF orientation of an image; 1 if it is missing or cannot be read."""
    try:
        return int(opened.getexif().get(_ORIENTATION, 1))
    except Exception:  # the EXIF data is broken, not the image
        return 1


def _foreign(data: bytes, place: object) -> ImageError:
    begins = data[:64].lstrip()
    kind = next((kind for first, kind in _FOREIGN.items() if begins.startswith(first)), None)
    got = (
        "empty" if not data else kind or f"in an unknown format, beginning with {data[:8].hex(' ')}"
    )
    return image_error(place, f"the file is {got}, expected {_FORMATS}")


def damaged(error: Exception, place: object) -> ImageError:
    """Convert an exception of a decoder to a one-line error."""
    said = " ".join(str(error).split())[:120] or type(error).__name__
    return image_error(place, f"the image is damaged ({said})", "Download it again, or remove it")
