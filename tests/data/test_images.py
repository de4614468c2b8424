"""Accepted images are converted to one form; other files are refused with an error of one line."""

import io
import os
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from foveal.data import ImageSpec, read_image
from foveal.errors import DataError, ImageError

GRAY = ImageSpec(num_channels=1)
COLOR = ImageSpec()


def written(image: Image.Image, kind: str = "PNG", **settings: Any) -> bytes:
    """Return the bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **settings)
    return buffer.getvalue()


def corners() -> Image.Image:
    """A 6 x 4 image with a different color in each corner."""
    image = Image.new("RGB", (6, 4), (255, 255, 255))
    for place, color in {(0, 0): (255, 0, 0), (5, 0): (0, 255, 0), (0, 3): (0, 0, 255)}.items():
        image.putpixel(place, color)
    return image


@pytest.mark.parametrize("kind", ["PNG", "GIF", "BMP", "WEBP"])
def test_formats_without_loss_give_the_same_pixels(kind: str) -> None:
    settings = {"lossless": True} if kind == "WEBP" else {}
    expected = torch.from_numpy(np.array(corners())).permute(2, 0, 1)
    assert torch.equal(read_image(written(corners(), kind, **settings), COLOR), expected)


def test_the_content_decides_and_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "really_a_png.jpg"
    path.write_bytes(written(corners()))
    assert read_image(path, COLOR).shape == (3, 4, 6)


@pytest.mark.parametrize(
    ("mode", "color", "red_green_blue"),
    [
        ("1", 1, (255, 255, 255)),
        ("L", 77, (77, 77, 77)),
        ("P", 0, (0, 0, 0)),
        ("LA", (0, 0), (255, 255, 255)),  # black, but fully transparent: white
        ("LA", (0, 255), (0, 0, 0)),
        ("RGBA", (255, 0, 0, 255), (255, 0, 0)),
        ("RGBA", (255, 0, 0, 0), (255, 255, 255)),
        ("I;16", 0x8042, (0x80, 0x80, 0x80)),
    ],
)
def test_every_mode_becomes_color_on_white(
    mode: str, color: Any, red_green_blue: tuple[int, int, int]
) -> None:
    pixels = read_image(written(Image.new(mode, (3, 2), color)), COLOR)
    assert pixels.shape == (3, 2, 3)
    assert [pixels[channel].unique().tolist() for channel in range(3)] == [
        [value] for value in red_green_blue
    ]


def test_cmyk_becomes_color() -> None:
    pixels = read_image(written(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "JPEG"), COLOR)
    red, green, blue = pixels.float().mean((1, 2)).tolist()
    assert red > 200
    assert max(green, blue) < 60


def test_a_transparent_color_of_a_palette_is_white() -> None:
    image = Image.new("P", (2, 1), 0)
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putpixel((1, 0), 1)
    pixels = read_image(written(image, transparency=0), COLOR)
    assert pixels[:, 0].T.tolist() == [[255, 255, 255], [40, 50, 60]]


def test_grey_has_one_channel() -> None:
    assert read_image(written(corners()), GRAY).shape == (1, 4, 6)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_turned_as_its_exif_says(orientation: int) -> None:
    upright = np.array(corners())
    # The pixels that a rotated camera stores, for the rows and columns of the EXIF table.
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: np.rot90(upright),
        7: upright[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = written(Image.fromarray(np.ascontiguousarray(stored)), exif=exif)
    expected = torch.from_numpy(upright).permute(2, 0, 1)
    assert torch.equal(read_image(data, COLOR), expected)


def test_a_large_image_is_shrunk_to_fit_and_keeps_its_shape() -> None:
    spec = ImageSpec(height=50, width=100)
    assert read_image(written(Image.new("RGB", (400, 100))), spec).shape == (3, 25, 100)
    assert read_image(written(Image.new("RGB", (400, 400)), "JPEG"), spec).shape == (3, 50, 50)
    assert read_image(written(Image.new("RGB", (4000, 2))), spec).shape == (3, 1, 100)
    turned = Image.Exif()
    turned[0x0112] = 6
    data = written(Image.new("RGB", (400, 100)), "JPEG", exif=turned)
    assert read_image(data, spec).shape == (3, 50, 12)


def test_a_small_image_stays_as_it_is() -> None:
    assert read_image(written(corners()), ImageSpec(height=1000, width=1000)).shape == (3, 4, 6)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_margins_are_cut_off_before_it_is_shrunk(mode: str) -> None:
    page = Image.new("RGB", (100, 60), (255, 255, 255))
    page.paste((0, 0, 0), (30, 20, 50, 30))
    trimmed = read_image(
        written(page.convert(mode)), ImageSpec(num_channels=1, width=24, trim=True)
    )
    assert trimmed.shape == (1, 14, 24)  # a margin of two pixels is left on each side
    assert (trimmed == 0).sum() == 20 * 10


def test_transparent_margins_are_cut_off_too() -> None:
    page = Image.new("RGBA", (100, 60), (0, 0, 0, 0))
    page.paste((0, 0, 0, 255), (30, 20, 50, 30))
    assert read_image(written(page), ImageSpec(trim=True)).shape == (3, 14, 24)


def letter(side: int, mode: str = "L") -> bytes:
    """A square letter on white, drawn with a stroke of four pixels."""
    page = Image.new("L", (side, side), 255)
    ImageDraw.Draw(page).rectangle((0, 0, side - 1, side - 1), outline=0, width=4)
    return written(page.convert(mode))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
def test_large_letters_become_as_small_as_others(mode: str) -> None:
    spec = ImageSpec(num_channels=1, ink=0.4)
    sizes = [read_image(letter(side, mode), spec).shape[-1] for side in (40, 80, 160)]
    assert sizes == [36, 38, 39]  # corners make the ink slightly less than four pixels per side
    assert all(read_image(letter(side, mode), spec).min() == 0 for side in (40, 80, 160))
    assert read_image(letter(160, mode), ImageSpec(num_channels=1)).shape == (1, 160, 160)


def test_what_has_much_ink_keeps_its_size_and_of_none_a_pixel_is_left() -> None:
    spec = ImageSpec(num_channels=1, ink=0.1)
    dark = read_image(written(Image.new("L", (6, 4), 90)), spec)
    assert dark.shape == (1, 4, 6)
    assert (dark == 0).all()
    blank = read_image(written(Image.new("L", (6, 4), 255)), spec)
    assert blank.shape == (1, 1, 1)
    assert (blank == 255).all()


def test_without_margins_and_without_ink_all_of_it_is_left() -> None:
    for page in (corners(), Image.new("L", (6, 4), 255)):
        assert read_image(written(page), ImageSpec(trim=True)).shape == (3, 4, 6)


def test_of_a_moving_image_the_first_picture_is_read() -> None:
    frames = [Image.new("L", (4, 4), value) for value in (10, 200)]
    data = written(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert read_image(data, GRAY).unique().tolist() == [10]


def test_a_member_of_an_archive_is_read_without_unpacking_it(tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("animals/cat.png", written(corners()), zipfile.ZIP_DEFLATED)
        opened.writestr("dog.png", written(corners()), zipfile.ZIP_STORED)
    for name in ("animals/cat.png", "dog.png"):
        assert read_image(archive / name, COLOR).shape == (3, 4, 6)
    assert [path.name for path in tmp_path.iterdir()] == ["photos.zip"]
    with pytest.raises(ImageError, match=r"photos\.zip: has no member 'cat\.png'\. Correct"):
        read_image(archive / "cat.png", COLOR)
    with pytest.raises(ImageError, match="has no member"):
        read_image(archive / "../photos.zip/animals/../../secret.png", COLOR)


def test_an_archive_that_changed_is_listed_again(tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    for name in ("first.png", "second.png"):
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr(name, written(corners()) + b" " * len(name))
        assert read_image(archive / name, COLOR).shape == (3, 4, 6)


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("bomb.png", b"\x89PNG\r\n\x1a\n" + bytes(1 << 24))
    with pytest.raises(ImageError, match="larger than 1,000 bytes, the maximum"):
        read_image(archive / "bomb.png", ImageSpec(max_bytes=1000))


def test_too_many_pixels_are_refused_before_any_is_decoded() -> None:
    data = written(Image.new("1", (5000, 4000)))
    assert len(data) < 10_000
    with pytest.raises(ImageError) as caught:
        read_image(data, ImageSpec(max_pixels=1_000_000))
    assert str(caught.value) == (
        "the image: 5,000 x 4,000 pixels, expected from 1 to 1,000,000 pixels. "
        "Resize it, or increase max_pixels"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty, expected PNG, JPEG, GIF, BMP or WebP. Save it as PNG or JPEG"),
        (b"II*\0 and so on", "the file is TIFF"),
        (b"hello world", "in an unknown format, beginning with 68 65 6c 6c 6f 20 77 6f"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:", "a Git LFS pointer"),
        (b"\x89PNG\r\n\x1a\nand then nothing", "the image is damaged"),
        (written(Image.new("RGB", (64, 64)), "JPEG")[:-300], "the image is damaged"),
        (written(corners())[:60], "the image is damaged"),
    ],
)
def test_what_is_no_image_is_refused_in_one_line(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(content)
    with pytest.raises(ImageError) as caught:
        read_image(path, COLOR)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, DataError)


def test_a_file_that_is_not_there_a_folder_a_pipe_and_a_name_with_nul(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")  # nobody ever writes to it
    for path, said in (
        (tmp_path / "pipe.png", "is not a file, expected an image"),
        (tmp_path / "none.png", "does not exist, expected an image"),
        (tmp_path, "is a folder, expected an image"),
        (tmp_path / "a\0b.png", "does not exist|cannot be read"),
    ):
        with pytest.raises(ImageError, match=said):
            read_image(path, COLOR)


def test_bytes_at_hand_are_limited_too() -> None:
    data = written(corners())
    with pytest.raises(ImageError, match="the image: larger than 50 bytes"):
        read_image(data, ImageSpec(max_bytes=50))


def test_a_file_larger_than_allowed_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as handle:
        handle.truncate(1 << 40)  # a sparse file of one terabyte
    with pytest.raises(ImageError, match="larger than 33,554,432 bytes"):
        read_image(path, COLOR)


def gif_of(width: int, height: int, disposal: int = 2) -> bytes:
    """A GIF with a small screen, whose only frame has the given size."""
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + bytes(6)
    control = bytes([0x21, 0xF9, 4, disposal << 2 | 1, 0, 0, 0, 0])
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0)
    return screen + control + frame + b"\x02\x02\x4c\x01\x00;"


def webp_of(width: int, height: int) -> bytes:
    """The header of a WebP with a canvas of this size, and no picture in it."""
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + sizes
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def png_of(width: int, height: int) -> bytes:
    """A PNG whose header gives this size, with almost no data in it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def bmp_of(width: int, height: int) -> bytes:
    """The header of a BMP of this size."""
    core = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + core


@pytest.mark.parametrize(
    "bomb",
    [
        gif_of(60_000, 60_000),
        gif_of(13_000, 13_000),  # below the decoder's own limit
        webp_of(16_000, 16_000),
        png_of(100_000, 100_000),
        bmp_of(100_000, 100_000),
    ],
    ids=["GIF", "smaller GIF", "WebP", "PNG", "BMP"],
)
def test_a_header_that_promises_too_much_is_refused(bomb: bytes) -> None:
    assert len(bomb) < 200
    with pytest.raises(ImageError, match="pixels, expected from 1 to 33,554,432"):
        read_image(bomb, COLOR)


def test_millions_of_rows_of_one_pixel_are_refused_before_they_are_decoded() -> None:
    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    header = struct.pack(">IIBBBBB", 1, 1 << 25, 8, 0, 0, 0, 0)
    # The pixels are missing: decoding the file would raise another error.
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    with pytest.raises(ImageError, match="expected sides of at most 65,535"):
        read_image(data, GRAY)
