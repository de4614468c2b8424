"""Read images as pixels, with limits, because an image may come from an untrusted source.

    bytes -> format, from the first bytes -> size, from the header -> pixels -> upright, at most
    the maximum size, gray or color

An image is decoded only if its header shows an acceptable size, and only with a decoder from the list below. Every
error of a decoder becomes a one-line message about the file. This file needs the package pillow.

Axes: C channels, h and w height and width.
"""

from collections.abc import Callable
from io import BytesIO
from typing import Protocol, runtime_checkable

import numpy as np
from PIL import Image, ImageChops
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

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


class UnreadableImageError(Exception):
    """An image that cannot be read: the problem, and what to do about it."""

    def __init__(self, what: str, remedy: str = "Save it as PNG or JPEG") -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


@runtime_checkable
class ImageSettings(Protocol):
    """How images are read; the fields are those of `ImageSpec`."""

    @property
    def num_channels(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def trim(self) -> bool: ...
    @property
    def ink(self) -> float | None: ...
    @property
    def max_pixels(self) -> int: ...
    @property
    def max_bytes(self) -> int: ...


def open_image(data: bytes, settings: ImageSettings) -> ImageFile:
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
        raise _foreign(data)
    outline = image_outline(data)
    if outline is not None:
        check_size((outline.width, outline.height), settings)
    try:
        opened = decoder(BytesIO(data))
    except Exception as error:  # a decoder may raise anything for unexpected bytes
        raise damaged(error) from None
    check_size(opened.size, settings)
    return opened


def image_outline(data: bytes) -> Outline | None:
    """Parse the header of formats whose decoders must not run before the size is checked."""
    if data.startswith(b"GIF"):
        return gif_outline(data)
    return webp_outline(data) if data.startswith(b"RIFF") else None


def check_size(size: tuple[int, int], settings: ImageSettings) -> None:
    """Raise an error for an image with too many pixels, or none."""
    width, height = size
    if not (width > 0 and height > 0 and width * height <= settings.max_pixels):
        raise UnreadableImageError(
            f"{width:,} x {height:,} pixels, expected from 1 to {settings.max_pixels:,} pixels",
            "Resize it, or increase max_pixels",
        )
    if max(width, height) > _MOST_SIDE:
        raise UnreadableImageError(
            f"{width:,} x {height:,} pixels, expected sides of at most {_MOST_SIDE:,}",
            "Cut it into pieces",
        )


def read_picture(opened: ImageFile, settings: ImageSettings) -> np.ndarray:
    """Read the pixels of the current frame of an opened image."""
    try:
        return _pixels(opened, settings)
    except UnreadableImageError:
        raise
    except Exception as error:  # as above
        raise damaged(error) from None


def _pixels(opened: ImageFile, settings: ImageSettings) -> np.ndarray:
    # A JPEG can be decoded at 1/2, 1/4 or 1/8 of its size if that is still large enough. Its orientation is not
    # known yet, so use the larger side for both.
    most = max(settings.width, settings.height)
    # Trimming may leave a small part, and the width of lines is measured at full size.
    if not settings.trim and settings.ink is None:
        opened.draft(None, (most, most))
    opened.load()
    check_size(opened.size, settings)  # the size of a GIF can grow while it is read
    return picture_pixels(opened, settings)


def picture_pixels(opened: Image.Image, settings: ImageSettings) -> np.ndarray:
    """Convert a decoded image to pixels of the requested size and channels."""
    turn = _orientation(opened)
    lies = turn >= _LIES_DOWN
    most = (settings.height, settings.width) if lies else (settings.width, settings.height)
    plain = _plain(opened)
    image = _trimmed(plain) if settings.trim else plain
    scale = 1.0 if settings.ink is None else min(1.0, _ink(image) / settings.ink)
    image = _on_white(_shrunk(image, most, scale))
    if turn in _TURNS:
        image = image.transpose(_TURNS[turn])
    image = image.convert("L" if settings.num_channels == 1 else "RGB")
    if settings.ink is not None:
        image = _darkened(image)
    array = np.array(image, dtype=np.uint8)  # a copy, which the caller may keep
    channels = array[None] if settings.num_channels == 1 else array.transpose(2, 0, 1)
    return np.ascontiguousarray(channels)


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


def _foreign(data: bytes) -> UnreadableImageError:
    begins = data[:64].lstrip()
    kind = next((kind for first, kind in _FOREIGN.items() if begins.startswith(first)), None)
    got = (
        "empty" if not data else kind or f"in an unknown format, beginning with {data[:8].hex(' ')}"
    )
    return UnreadableImageError(f"the file is {got}, expected {_FORMATS}")


def damaged(error: Exception) -> UnreadableImageError:
    """Convert an exception of a decoder to a one-line error."""
    said = " ".join(str(error).split())[:120] or type(error).__name__
    return UnreadableImageError(f"the image is damaged ({said})", "Download it again, or remove it")
