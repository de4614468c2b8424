"""Read the bytes of a file from any offset; files compressed with gzip or zstd are decompressed.

The first bytes of a file determine its compression, not its name. Offsets count decompressed bytes. Seeking is
immediate in a plain file; a compressed file is decompressed up to the offset.
"""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

import zstandard

from ..datasets._folder import advice
from ..errors import DataError
from ._example import data_error

CHUNK = 1 << 18
# A thousand bytes of zstd can decompress to 32 MB; larger chunks would not keep memory bounded.
PACKED_CHUNK = 1 << 10

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_FOREIGN = {
    b"PK\x03\x04": ("a zip archive", "Extract it, and use the file inside"),
    b"BZh": (
        "compressed with bzip2",
        "Decompress it with bunzip2, or compress it with gzip or zstd",
    ),
    b"\xfd7zXZ\x00": (
        "compressed with xz",
        "Decompress it with unxz, or compress it with gzip or zstd",
    ),
    b"\xff\xfe": ("UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8"),
}


class DamagedError(Exception):
    """The compressed data is damaged. The reader of lines adds the line number to the message."""


@runtime_checkable
class Readable(Protocol):
    """A file opened for reading, on this machine or elsewhere."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end of the file."""
        ...

    def seek(self, offset: int, /) -> int:
        """Move to an offset."""
        ...


class _Unpacking(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def read_bytes(file: str, offset: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file in chunks, from `offset` to `end`. Both count decompressed bytes."""
    place = offset
    for chunk in _from(file, offset):
        if end is not None and place + len(chunk) >= end:
            yield chunk[: end - place]
            return
        place += len(chunk)
        yield chunk


def is_packed(file: str) -> bool:
    """Return True if the file is compressed with gzip or zstd."""
    with _opened(file) as handle:
        return _unpacker(handle.read(6)) is not None


def num_bytes(file: str) -> int:
    """Return the size of a file on disk."""
    try:
        return Path(file).stat().st_size
    except OSError as error:
        raise _unreadable(file, error) from None


def read_handle(handle: Readable, name: str, offset: int = 0) -> Iterator[bytes]:
    """Yield the decompressed bytes, from `offset` on, of a file that is open at its beginning."""
    first = handle.read(6)
    unpacker = _unpacker(first)
    if unpacker is None:
        _refuse_foreign(name, first)
        handle.seek(offset)
        while chunk := handle.read(CHUNK):
            yield chunk
        return
    handle.seek(0)
    yield from _after(offset, _unpacked(handle, unpacker))


def _from(file: str, offset: int) -> Iterator[bytes]:
    with _opened(file) as handle:
        try:
            yield from read_handle(handle, file, offset)
        except OSError as error:
            raise _unreadable(file, error) from None


def _opened(file: str) -> BinaryIO:
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(file: str, error: OSError) -> DataError:
    remedy = {
        FileNotFoundError: advice(file) or "Check the path",
        IsADirectoryError: "Use a file, or a pattern such as folder/*.tsv",
        PermissionError: "Change its permissions",
    }.get(type(error), "Copy it to another disk")
    return data_error(file, f"cannot be read: {error.strerror or error}", remedy)


def _unpacker(first: bytes) -> Callable[[], _Unpacking] | None:
    if first.startswith(_GZIP):
        return lambda: zlib.decompressobj(wbits=31)
    if first.startswith(_ZSTD):
        return lambda: zstandard.ZstdDecompressor().decompressobj()
    return None


def _refuse_foreign(file: str, first: bytes) -> None:
    for beginning, (what, remedy) in _FOREIGN.items():
        if first.startswith(beginning):
            raise data_error(
                f"{file}, line 1",
                f"the file is {what}, expected UTF-8 text, plain or compressed with gzip or zstd",
                remedy,
            )


def _unpacked(handle: Readable, new: Callable[[], _Unpacking]) -> Iterator[bytes]:
    """Decompress the members of a file one after another."""
    unpacking = new()
    try:
        while packed := handle.read(PACKED_CHUNK):
            while packed:
                if unpacking.eof:
                    unpacking = new()
                if chunk := unpacking.decompress(packed):
                    yield chunk
                packed = unpacking.unused_data if unpacking.eof else b""
    except (zlib.error, zstandard.ZstdError) as error:
        raise DamagedError(f"the compressed data is damaged ({error})") from None
    if not unpacking.eof:
        raise DamagedError("the compressed file is truncated")


def _after(offset: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Skip the first `offset` bytes of the chunks."""
    for chunk in chunks:
        if offset < len(chunk):
            yield chunk[offset:]
        offset = max(0, offset - len(chunk))
