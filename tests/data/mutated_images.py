"""Read thousands of damaged images with bounded memory; test_mutated_images.py starts this process.

    python mutated_images.py stills=500 clips=250 archives=100 videos=100

The exit code is 0 if every file is read, or refused with an ImageError of one line.
"""

import io
import json
import resource
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from PIL import Image

from foveal.data import ImageSpec, read_frames, read_image
from foveal.errors import ImageError

ROOM = 256 << 20  # bytes of address space on top of the use after the imports
# The limits are small: a decoder that trusts the header would need far more memory than there is.
SPEC = ImageSpec(height=64, width=64, max_pixels=1 << 20, max_bytes=1 << 20)
MAX_FRAMES = 4
EXTREMES = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
PNG = b"\x89PNG\r\n\x1a\n"


def written(image: Image.Image, kind: str, **options: Any) -> bytes:
    """Return the bytes of an image file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def stills() -> list[bytes]:
    """Return valid images of all formats and many modes."""
    values = np.random.default_rng(0).integers(0, 256, (24, 40, 4), dtype=np.uint8)
    color, alpha = Image.fromarray(values[..., :3].copy()), Image.fromarray(values)
    exif = Image.Exif()
    exif[0x0112] = 6
    modes = [color, alpha, *(color.convert(mode) for mode in ("1", "L", "P", "LA"))]
    deep = Image.fromarray(values[..., :2].copy().view(np.uint16)[..., 0])
    pngs = [written(image, "PNG") for image in (*modes, deep)]
    return [
        *pngs,
        written(color, "PNG", exif=exif, icc_profile=b"profile" * 20),
        written(color, "JPEG", exif=exif),
        written(color, "JPEG", progressive=True),
        written(color.convert("CMYK"), "JPEG"),
        written(color.convert("P"), "GIF", transparency=3),
        *(written(color.convert(mode), "BMP") for mode in ("1", "L", "P", "RGB")),
        written(color, "WEBP"),
        written(alpha, "WEBP", lossless=True, exif=exif),
    ]


def clips() -> list[bytes]:
    """Return valid animated images."""
    frames = [Image.new("RGB", (32, 20), (40 * n, 0, 90)) for n in range(5)]
    rest: dict[str, Any] = {"save_all": True, "append_images": frames[1:], "duration": 50}
    gifs = [written(frames[0], "GIF", **rest, disposal=disposal) for disposal in (0, 2, 3)]
    return [*gifs, written(frames[0], "PNG", **rest), written(frames[0], "WEBP", **rest)]


def archives() -> list[bytes]:
    """Return valid archives of images."""
    found: list[bytes] = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for number, data in enumerate(stills()[:4]):
                archive.writestr(f"{number}.png", data)
        found.append(buffer.getvalue())
    return found


def videos() -> list[bytes]:
    """Return valid videos."""
    found: list[bytes] = []
    for container in ("mp4", "matroska"):
        buffer = io.BytesIO()
        with av.open(buffer, "w", format=container) as opened:
            stream = opened.add_stream("mpeg4", rate=10)
            stream.width, stream.height, stream.pix_fmt = 32, 16, "yuv420p"
            for value in range(0, 200, 25):
                picture = np.full((16, 32, 3), value, dtype=np.uint8)
                opened.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            opened.mux(stream.encode(None))
        found.append(buffer.getvalue())
    return found


@st.composite
def mutated(draw: st.DrawFn, sound: list[bytes]) -> bytes:
    """A file with a few faults in it."""
    data = bytearray(draw(st.sampled_from(sound)))
    for _ in range(draw(st.integers(1, 4))):
        # Most faults that mislead a decoder are near the beginning.
        near = draw(st.booleans())
        at = draw(st.integers(0, max(0, min(len(data), 64 if near else len(data)) - 1)))
        match draw(st.sampled_from(["bit", "number", "cut", "splice", "repeat"])):
            case "bit" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "number":
                order, size = draw(st.sampled_from("<>")), draw(st.sampled_from("BHI"))
                value = draw(st.sampled_from(EXTREMES)) & (256 ** struct.calcsize(size) - 1)
                data[at : at + struct.calcsize(size)] = struct.pack(order + size, value)
            case "cut":
                del data[at:]
            case "splice":
                other = draw(st.sampled_from(sound))
                data[at:] = other[draw(st.integers(0, len(other))) :]
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
            case _:
                pass
    return summed(bytes(data)) if draw(st.booleans()) else bytes(data)


def summed(data: bytes) -> bytes:
    """Correct the chunk checksums of a PNG; otherwise the decoder would not reach the faults."""
    if not data.startswith(PNG):
        return data
    whole, at = bytearray(data), len(PNG)
    while at + 12 <= len(whole):
        (size,) = struct.unpack_from(">I", whole, at)
        end = at + 8 + size
        if end + 4 > len(whole):
            break
        struct.pack_into(">I", whole, end, zlib.crc32(whole[at + 4 : end]))
        at = end + 4
    return bytes(whole)


def read_still(data: bytes) -> None:
    """Read an image and check its shape."""
    for spec in (SPEC, replace(SPEC, trim=True, ink=0.3)):
        pixels = read_image(data, spec)
        assert pixels.shape[0] == 3
        assert 1 <= pixels.shape[1] <= SPEC.height
        assert 1 <= pixels.shape[2] <= SPEC.width


def read_clip(data: bytes) -> None:
    """Read a clip and check its shape."""
    frames = read_frames(data, SPEC, MAX_FRAMES)
    assert 1 <= len(frames) <= MAX_FRAMES
    assert max(frames.shape[2:]) <= SPEC.width


def read_archive(data: bytes) -> None:
    """Read the images of an archive."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "images.zip"
        path.write_bytes(data)
        for number in range(4):
            read_image(path / f"{number}.png", SPEC)


def main(numbers: dict[str, int]) -> None:
    """Read damaged files of each kind; print the number of refused files and the memory used."""
    files = {kind: KINDS[kind][0]() for kind in numbers}
    for kind, sound in files.items():
        for data in sound:
            # This loads the decoders' modules, and shows that the files are valid.
            KINDS[kind][1](data)
    before = peak()
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
    refused = {kind: num_refused(files[kind], KINDS[kind][1], numbers[kind]) for kind in numbers}
    sys.stdout.write(json.dumps({"refused": refused, "bytes": peak() - before}))


def num_refused(sound: list[bytes], read: Callable[[bytes], None], number: int) -> int:
    """Return how many of `number` damaged files were refused; the others were read."""
    refused: list[str] = []

    @settings(
        max_examples=number,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(data=mutated(sound))
    def check(data: bytes) -> None:
        try:
            read(data)
        except ImageError as error:
            said = str(error)
            assert "\n" not in said, said
            # A memory error means that the decoder tried to allocate too much.
            assert "memory" not in said.lower(), said
            refused.append(said)

    check()
    return len(refused)


def peak() -> int:
    """Return the peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


KINDS: dict[str, tuple[Callable[[], list[bytes]], Callable[[bytes], None]]] = {
    "stills": (stills, read_still),
    "clips": (clips, read_clip),
    "archives": (archives, read_archive),
    "videos": (videos, read_clip),
}


if __name__ == "__main__":
    pairs = (argument.split("=") for argument in sys.argv[1:])
    main({kind: int(number) for kind, number in pairs})
