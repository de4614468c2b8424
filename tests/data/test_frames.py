"""Clips are read from folders of images, animated images and videos, in order and evenly spaced."""

import io
import sys
from pathlib import Path

import av
import numpy as np
import pytest
import torch
from PIL import Image

from foveal.data import ImageSpec, read_frames
from foveal.errors import ImageError, MissingPackageError, ValueRangeError

GRAY = ImageSpec(num_channels=1)
VALUES = tuple(range(10, 250, 20))


def moving(kind: str, values: tuple[int, ...] = VALUES) -> bytes:
    """A clip in which each frame has a single gray value."""
    frames = [Image.new("L", (16, 8), value) for value in values]
    buffer = io.BytesIO()
    settings = {"lossless": True} if kind == "WEBP" else {}
    frames[0].save(buffer, kind, save_all=True, append_images=frames[1:], **settings)
    return buffer.getvalue()


def video(container: str) -> bytes:
    """The same clip as a video, with a codec that loses little."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=container) as opened:
        stream = opened.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 16, 8, "yuv420p"
        stream.bit_rate = 1_000_000
        for value in VALUES:
            picture = np.full((8, 16, 3), value, dtype=np.uint8)
            opened.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        opened.mux(stream.encode(None))
    return buffer.getvalue()


def grays(frames: torch.Tensor) -> list[int]:
    """Return the gray value of each frame."""
    return [round(frame.float().mean().item()) for frame in frames]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_a_moving_image_gives_its_frames(kind: str) -> None:
    frames = read_frames(moving(kind), GRAY, max_frames=100)
    assert frames.shape == (len(VALUES), 1, 8, 16)
    assert grays(frames) == list(VALUES)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_many_frames_some_are_kept_evenly_spaced(kind: str) -> None:
    assert grays(read_frames(moving(kind), GRAY, max_frames=4)) == list(VALUES[::3])


def test_a_folder_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for number, value in enumerate(VALUES, start=1):
        Image.new("L", (16, 8), value).save(tmp_path / f"frame{number}.png")
    (tmp_path / "notes.txt").write_text("no frame")
    assert grays(read_frames(tmp_path, GRAY, max_frames=100)) == list(VALUES)
    assert grays(read_frames(tmp_path, GRAY, max_frames=3)) == list(VALUES[::4])


@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_a_video_gives_its_frames(container: str, tmp_path: Path) -> None:
    path = tmp_path / "clip"
    path.write_bytes(video(container))
    all_frames = read_frames(path, GRAY, max_frames=100)
    assert np.allclose(grays(all_frames), VALUES, atol=3)
    assert np.allclose(grays(read_frames(path, GRAY, max_frames=4)), VALUES[::3], atol=3)


def test_an_image_that_does_not_move_is_one_frame() -> None:
    assert grays(read_frames(moving("PNG", VALUES[:1]), GRAY, max_frames=5)) == [VALUES[0]]


def test_without_the_extra_a_video_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    data = video("mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingPackageError) as caught:
        read_frames(data, GRAY, max_frames=5)
    assert str(caught.value) == (
        "the clip: a video needs the package av, which is not installed. "
        "Run in the checkout: pip install '.[video]'"
    )


def test_what_is_no_clip_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="0 images in the folder, expected from 1 to 16,384"):
        read_frames(tmp_path, GRAY, max_frames=5)
    Image.new("L", (16, 8)).save(tmp_path / "1.png")
    Image.new("L", (8, 8)).save(tmp_path / "2.png")
    with pytest.raises(ImageError, match="frames of 8 x 8 and of 16 x 8 pixels, expected one size"):
        read_frames(tmp_path, GRAY, max_frames=5)
    with pytest.raises(ImageError, match="the image is damaged"):
        read_frames(video("mp4")[:400], GRAY, max_frames=5)
    with pytest.raises(ValueRangeError, match="max_frames must be at least 1, got 0"):
        read_frames(tmp_path, GRAY, max_frames=0)


def test_a_clip_with_too_many_pixels_in_all_is_refused() -> None:
    long = moving("GIF", tuple(range(17)))
    with pytest.raises(
        ImageError, match="17 frames of 16 x 8 pixels, expected at most 16,384 frames"
    ):
        read_frames(long, ImageSpec(num_channels=1, max_pixels=16 * 8), max_frames=2)
