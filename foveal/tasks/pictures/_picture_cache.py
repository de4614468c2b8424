"""Cache of recently read pictures, which avoids decoding a picture several times in a row.

A prediction reads a picture two or three times (its size, its pixels, its layout), and an image may have ten questions.
The key is the file and its modification time, so a changed file is read again. Folders of frames are not cached,
because the modification time of a folder does not change when a frame does.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, final

from jaxtyping import UInt8
from torch import Tensor

MOST_BYTES = 1 << 26  # bytes of pixels: about 450 images of 224 x 224

Version: TypeAlias = tuple[str, int, int]  # file, modification time, size in bytes


@final
class PictureCache:
    """A cache of the most recent pictures, with a maximum number of bytes of pixels.

    Args:
        most_bytes: Maximum number of bytes of pixels.

    Examples:
        >>> import torch
        >>> cache = PictureCache()
        >>> cache.get(Path(__file__), lambda: torch.zeros(3, 2, 2, dtype=torch.uint8)).shape
        torch.Size([3, 2, 2])
        >>> cache.get(Path(__file__), lambda: 1 / 0).shape
        torch.Size([3, 2, 2])
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._num_bytes = most_bytes, 0
        self._kept: OrderedDict[Version, Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, path: Path, read: Callable[[], UInt8[Tensor, "*F C h w"]]
    ) -> UInt8[Tensor, "*F C h w"]:
        """Return the picture at a path or in an archive; `read` loads it on a cache miss."""
        version = _version(path)
        if version is None:
            return read()
        with self._lock:
            if version in self._kept:
                self._kept.move_to_end(version)
                return self._kept[version]
        picture = read()
        with self._lock:
            if version not in self._kept:
                self._kept[version] = picture
                self._num_bytes += picture.numel()
            while self._num_bytes > self._most_bytes:
                self._num_bytes -= self._kept.popitem(last=False)[1].numel()
        return picture


def _version(path: Path) -> Version | None:
    """Return the current version of a file, or of the archive that contains it; None if there is none."""
    try:
        file = next((part for part in (path, *path.parents) if part.is_file()), None)
        state = None if file is None else file.stat()
    except (OSError, ValueError):  # the reader raises the error
        return None
    return None if state is None else (str(path), state.st_mtime_ns, state.st_size)
