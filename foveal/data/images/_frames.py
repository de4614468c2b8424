"""Frames of a clip: a folder of images, an animated GIF, WebP or PNG, or a video (extra `video`).

    source -> number and size of the frames -> the frames to keep, evenly spaced -> pixels

Axes: F frames, C channels, h and w height and width.
"""

import math
import re
from collections.abc import Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import torch
from jaxtyping import UInt8
from PIL.ImageFile import ImageFile
from torch import Tensor

from ...errors import ImageError, ValueRangeError
from ...extras import required
from ...runtime.images._headers import gif_outline
from .._example import evenly_spaced
from ._bytes import IMAGE, image_error, media_bytes
from ._images import (
    SUFFIXES,
    ImageSpec,
    check_size,
    damaged,
    open_image,
    picture_pixels,
    read_image,
    read_picture,
)

Frame: TypeAlias = UInt8[Tensor, "C h w"]

# All frames between the kept frames must be decoded too. Decoding this many times the pixels of one image still takes
# only seconds.
CLIP_TIMES = 16
MAX_FRAMES = 1 << 14  # maximum number of frames of a clip
_MOST_MOMENTS = 4  # maximum number of moments for each frame of a GIF
_NUMBER = re.compile(r"(\d+)")
# Video containers, by bytes 4 to 8 or by the first four bytes. Formats that can refer to other files, such as
# playlists, are excluded.
_CONTAINERS = {b"ftyp": "mp4", b"\x1aE\xdf\xa3": "matroska"}


def read_frames(source: Path | bytes, spec: ImageSpec, max_frames: int) -> UInt8[Tensor, "F C h w"]:
    """Read at most `max_frames` frames of a clip, evenly spaced from the first frame on.

    Args:
        source: A folder of images, sorted by the numbers in their names; or a GIF, WebP, PNG, mp4 or mkv, as a file, a
            member of an archive, or the content of a file.
        spec: As for a single image.
        max_frames: Maximum number of frames.

    Returns:
        The frames, one after the other, with values from 0 to 255.

    Raises:
        ImageError: There is no frame, a frame cannot be read, or the frames have different sizes.
        ValueRangeError: `max_frames` is less than 1.
    """
    if max_frames < 1:
        raise ValueRangeError(
            f"read_frames: max_frames must be at least 1, got {max_frames}. Use a positive number of frames."
        )
    place = source if isinstance(source, Path) else "the clip"
    if isinstance(source, Path) and source.is_dir():
        frames = _of_folder(source, spec, max_frames)
    else:
        data = media_bytes(source, spec.max_bytes, IMAGE)
        container = _CONTAINERS.get(data[4:8]) or _CONTAINERS.get(data[:4])
        if container is None:
            frames = _of_image(data, place, spec, max_frames)
        else:
            frames = _of_video(data, container, place, spec, max_frames)
    if not frames:
        raise image_error(place, "no frame can be read", "Download it again, or remove it")
    sizes = {tuple(frame.shape[1:]) for frame in frames}
    if len(sizes) > 1:
        (h, w), (other_h, other_w) = sorted(sizes)[:2]
        raise image_error(
            place,
            f"frames of {w} x {h} and of {other_w} x {other_h} pixels, expected one size",
            "Resize them to one size",
        )
    return torch.stack(frames)


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key for names with numbers: 10 comes after 9.

    Args:
        name: Name of a file.

    Returns:
        Numbers and texts of the name, in order.

    Examples:
        >>> sorted(["frame10.png", "frame9.png"], key=natural_order)
        ['frame9.png', 'frame10.png']
    """
    parts = _NUMBER.split(name)
    return tuple(
        (0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts if part
    )


def _of_folder(folder: Path, spec: ImageSpec, max_frames: int) -> list[Frame]:
    names = [
        path.name
        for path in islice(folder.iterdir(), MAX_FRAMES + 1)
        if path.suffix.lower() in SUFFIXES
    ]
    if not names or len(names) > MAX_FRAMES:
        raise image_error(
            folder,
            f"{len(names):,} images in the folder, expected from 1 to {MAX_FRAMES:,}",
            "Use a folder with the frames of one clip, one image per frame",
        )
    kept = evenly_spaced(sorted(names, key=natural_order), max_frames)
    return [read_image(folder / name, spec) for name in kept]


def _of_image(data: bytes, place: object, spec: ImageSpec, max_frames: int) -> list[Frame]:
    opened = open_image(data, place, spec)
    shown = _shown(data, opened, place)
    _check_clip(len(shown), opened.size, place, spec)
    frames: list[Frame] = []
    for number in evenly_spaced(shown, max_frames):
        try:
            opened.seek(number)
        except Exception as error:  # a decoder may raise anything
            raise damaged(error, place) from None
        frames.append(read_picture(opened, place, spec))
    return frames


def _shown(data: bytes, opened: ImageFile, place: object) -> Sequence[int]:
    """Return the index of the frame that is visible at each moment. A GIF frame with a longer duration counts more
    than once, because GIF encoders drop repeated frames.
    """
    if data.startswith(b"GIF"):
        return _moments(gif_outline(data).times)
    try:
        return range(max(1, int(getattr(opened, "n_frames", 1))))
    except Exception as error:  # as above
        raise damaged(error, place) from None


def _moments(times: Sequence[int]) -> list[int]:
    """Repeat the index of each frame in proportion to its duration. The unit is the greatest common divisor of all
    durations or, if that is very short, the shortest duration.

    Examples:
        >>> _moments([10, 20, 10])
        [0, 1, 1, 2]
    """
    real = [time for time in times if time] or [1]
    common, shortest = math.gcd(*real), min(real)
    is_fine = sum(times) // common > _MOST_MOMENTS * len(times)
    moment = shortest if is_fine else common
    counts = [max(1, round(time / moment)) for time in times]
    if sum(counts) > MAX_FRAMES:
        counts = [1] * len(times)
    return [number for number, count in enumerate(counts) for _ in range(count)]


def _check_clip(num_frames: int, size: tuple[int, int], place: object, spec: ImageSpec) -> None:
    check_size(size, place, spec)
    most = CLIP_TIMES * spec.max_pixels
    if num_frames > MAX_FRAMES or num_frames * size[0] * size[1] > most:
        raise image_error(
            place,
            f"{num_frames:,} frames of {size[0]:,} x {size[1]:,} pixels, expected at most "
            f"{MAX_FRAMES:,} frames and {most:,} pixels in total",
            "Shorten the clip, resize it, or increase max_pixels",
        )


def _of_video(
    data: bytes, container: str, place: object, spec: ImageSpec, max_frames: int
) -> list[Frame]:
    av = _av(place)
    try:
        with av.open(BytesIO(data), format=container) as opened:
            num_frames = _num_packets(opened)
        with av.open(BytesIO(data), format=container) as opened:
            stream = opened.streams.video[0]
            _check_clip(num_frames, (stream.width, stream.height), place, spec)
            wanted = set(evenly_spaced(range(num_frames), max_frames))
            decoded = islice(opened.decode(stream), num_frames)
            return [
                _of_video_frame(frame, place, spec)
                for number, frame in enumerate(decoded)
                if number in wanted
            ]
    except ImageError:
        raise
    except Exception as error:  # as above
        raise damaged(error, place) from None


def _num_packets(opened: Any) -> int:
    """Count the frames of a video without decoding them."""
    packets = opened.demux(opened.streams.video[0])
    return sum(1 for packet in islice(packets, MAX_FRAMES + 2) if packet.size)


def _of_video_frame(frame: Any, place: object, spec: ImageSpec) -> Frame:
    check_size((frame.width, frame.height), place, spec)
    return picture_pixels(frame.to_image(), spec)


def _av(place: object) -> Any:
    return required("video", "av", needed_by=f"{place}: a video")
