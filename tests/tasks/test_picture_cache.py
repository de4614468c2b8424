"""The cache of recently read images."""

import os
from pathlib import Path

import torch
from torch import Tensor

from foveal.tasks.pictures._picture_cache import PictureCache


class Reader:
    """Count the reads."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Tensor:
        self.times += 1
        return torch.full((1, 4, 4), self.times, dtype=torch.uint8)


def test_a_picture_is_read_once_until_its_file_changes(tmp_path: Path) -> None:
    path, read, cache = tmp_path / "a.png", Reader(), PictureCache()
    path.write_bytes(b"a")
    assert cache.get(path, read) is cache.get(path, read)
    assert read.times == 1
    path.write_bytes(b"ab")
    assert cache.get(path, read).unique().item() == 2
    os.utime(path, ns=(0, 0))  # same size, other modification time
    assert cache.get(path, read).unique().item() == 3
    assert cache.get(path, read).unique().item() == 3


def test_members_of_an_archive_change_with_it(tmp_path: Path) -> None:
    archive, read, cache = tmp_path / "photos.zip", Reader(), PictureCache()
    archive.write_bytes(b"PK")
    for name in ("a.png", "b.png", "a.png"):
        cache.get(archive / name, read)
    assert read.times == 2
    archive.write_bytes(b"PK more")
    cache.get(archive / "a.png", read)
    assert read.times == 3


def test_a_folder_of_frames_is_read_anew(tmp_path: Path) -> None:
    read, cache = Reader(), PictureCache()
    cache.get(tmp_path, read)
    cache.get(tmp_path, read)
    cache.get(Path("no\0name"), read)
    assert read.times == 3


def test_the_oldest_goes_first(tmp_path: Path) -> None:
    read, cache = Reader(), PictureCache(most_bytes=2 * 16)
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path in paths:
        path.write_bytes(b"")
    first, second, third = paths
    for path in (first, second, first, third):  # the second is the least recently used
        cache.get(path, read)
    assert read.times == 3
    cache.get(first, read)
    assert read.times == 3
    cache.get(second, read)
    assert read.times == 4
