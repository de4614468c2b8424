"""Read the bytes of an image or a recording from a file or from a member of a zip archive, up to a limit.

    photos/cat.png                 a file
    photos.zip/animals/cat.png     a member of an archive, read without unpacking the others

Names in an archive are only compared and nothing is written, so a malicious name cannot escape the archive.
"""

import functools
import struct
import zipfile
import zlib
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple

from ...errors import AudioError, DataError, ImageError
from .._example import data_error, quoted

MAX_MEMBERS = 1 << 20  # per archive, to bound the cached list of names
_NUM_ARCHIVES = 8  # archives whose lists are cached
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, lengths of name and extra field


class Medium(NamedTuple):
    """A kind of file, for error messages: its noun, the class of its errors, and advice."""

    noun: str
    error: type[DataError]
    remedy: str

    def refusal(self, place: object, what: str, remedy: str | None = None) -> DataError:
        """Create an error with a one-line message: the file, the problem, and advice."""
        return self.error(str(data_error(str(place), what, remedy or self.remedy)))


IMAGE = Medium("image", ImageError, "Save it as PNG or JPEG")
AUDIO = Medium("recording", AudioError, "Save it as WAV or FLAC")


class _Member(NamedTuple):
    offset: int  # offset of the header
    method: int
    packed: int  # compressed bytes


def image_error(place: object, what: str, remedy: str = IMAGE.remedy) -> ImageError:
    """Create an error with a one-line message about an image: its name, the problem, and advice."""
    return ImageError(str(data_error(str(place), what, remedy)))


def media_bytes(source: Path | bytes, max_bytes: int, medium: Medium) -> bytes:
    """Return the content of a file or of a member of an archive, or the given bytes; check the size limit."""
    if isinstance(source, bytes):
        return _at_most(source, f"the {medium.noun}", max_bytes, medium)
    path = source
    try:
        if path.is_file():
            with path.open("rb") as handle:
                return _at_most(handle.read(max_bytes + 1), path, max_bytes, medium)
        archive = _archive_of(path)
        if archive is not None:
            return _member_bytes(archive, path, max_bytes, medium)
        what = (
            "is a folder"
            if path.is_dir()
            else "is not a file"
            if path.exists()
            else "does not exist"
        )
    except DataError:
        raise
    except (OSError, ValueError) as error:  # a name that contains NUL raises ValueError
        reason = error.strerror if isinstance(error, OSError) else None
        raise medium.refusal(
            path, f"cannot be read: {reason or error}", "Correct the name"
        ) from None
    article = "an" if medium is IMAGE else "a"
    raise medium.refusal(
        path, f"{what}, expected {article} {medium.noun}", "Correct the name, or the folder"
    )


def archive_members(archive: Path) -> tuple[str, ...]:
    """Return the names of the files in an archive, in its order."""
    return tuple(_members_of(archive, IMAGE))


def _at_most(read: bytes, place: Path | str, max_bytes: int, medium: Medium) -> bytes:
    if len(read) > max_bytes:
        raise medium.refusal(
            place,
            f"larger than {max_bytes:,} bytes, the maximum",
            f"Reduce the {medium.noun}, or increase max_bytes",
        )
    return read


def _archive_of(path: Path) -> Path | None:
    """Return the archive in a path, or None."""
    return next((above for above in path.parents if above.is_file()), None)


def _member_bytes(archive: Path, path: Path, max_bytes: int, medium: Medium) -> bytes:
    name = path.relative_to(archive).as_posix()
    member = _members_of(archive, medium).get(name)
    if member is None:
        raise medium.refusal(archive, f"has no member {quoted(name)}", "Correct the name")
    with archive.open("rb") as handle:
        packed = _packed_bytes(handle, member, max_bytes, path, medium)
    if member.method == zipfile.ZIP_STORED:
        return _at_most(packed, path, max_bytes, medium)
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        unpacked = unpacking.decompress(packed, max_bytes + 1)
    except zlib.error as error:
        raise medium.refusal(
            path, f"damaged in its archive ({error})", "Create the archive again"
        ) from None
    return _at_most(unpacked, path, max_bytes, medium)


def _packed_bytes(
    handle: BinaryIO, member: _Member, max_bytes: int, path: Path, medium: Medium
) -> bytes:
    """Read the compressed bytes of a member; compression can make a file slightly larger."""
    handle.seek(member.offset)
    header = handle.read(_LOCAL_HEADER.size)
    if len(header) == _LOCAL_HEADER.size:
        signature, name_size, extra_size = _LOCAL_HEADER.unpack(header)
        if signature == b"PK\x03\x04":
            handle.seek(name_size + extra_size, 1)
            return handle.read(min(member.packed, max_bytes + max_bytes // 8 + 64))
    raise medium.refusal(path, "has no header in its archive", "Create the archive again")


def _members_of(archive: Path, medium: Medium) -> "MappingProxyType[str, _Member]":
    state = archive.stat()
    return _listed(archive, medium, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=_NUM_ARCHIVES)
def _listed(
    archive: Path, medium: Medium, _changed: int, _size: int
) -> "MappingProxyType[str, _Member]":
    """Return the members of an archive. The time of change and the size are part of the cache key."""
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
        raise medium.refusal(
            archive, f"not a readable zip archive ({error})", "Use a folder or a zip archive"
        ) from None
    if len(entries) > MAX_MEMBERS:
        raise medium.refusal(
            archive, f"has {len(entries):,} members, expected at most {MAX_MEMBERS:,}", "Split it"
        )
    readable = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    members = {
        entry.filename: _Member(entry.header_offset, entry.compress_type, entry.compress_size)
        for entry in entries
        if not entry.is_dir() and entry.compress_type in readable and not entry.flag_bits & 1
    }
    return MappingProxyType(members)
