"""Checksums of contents: two files with the same contents have one checksum, for any compression.

    x.gz              the checksum of the uncompressed bytes
    x.zip, x.tar.gz   the checksum of the lines "sha256  name" of all members, in the order of their names
    other files       the checksum of their bytes

These checksums also verify a file that its source stores uncompressed, and an archive that another program packed.
"""

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

_GZIP = b"\x1f\x8b"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the time of all zip members: equal members give equal archives
_ARCHIVES = (".zip", ".tar.gz")


def content_digest(path: Path) -> str:
    """Return the sha256 of the contents of a file."""
    return digest_of(path.read_bytes(), path.name)


def uncompressed_size(path: Path) -> int:
    """Return the number of bytes of a file after decompression."""
    return len(_uncompressed(path.read_bytes())) if path.suffix == ".gz" else path.stat().st_size


def digest_of(data: bytes, name: str) -> str:
    """Return the sha256 of the contents of `data`, read as a file called `name`."""
    if name.endswith(_ARCHIVES):
        return _listing_digest(_members(data, name))
    return hashlib.sha256(_uncompressed(data) if name.endswith(".gz") else data).hexdigest()


def stored_as(data: bytes, name: str) -> bytes:
    """Return the bytes to store in the file `name`: compressed with gzip if the name ends in .gz."""
    is_plain = name.endswith(".gz") and not data.startswith(_GZIP)
    return gzip.compress(data, mtime=0) if is_plain else data


def packed(members: Mapping[str, bytes], name: str) -> bytes:
    """Return a zip or tar.gz archive of members, which are given by name."""
    buffer = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for member in sorted(members):
                archive.writestr(zipfile.ZipInfo(member, _EARLIEST), members[member])
        return buffer.getvalue()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in sorted(members):
            entry = tarfile.TarInfo(member)
            entry.size = len(members[member])
            archive.addfile(entry, io.BytesIO(members[member]))
    return gzip.compress(buffer.getvalue(), mtime=0)


def _uncompressed(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(_GZIP) else data


def _members(data: bytes, name: str) -> dict[str, bytes]:
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {
                info.filename: archive.read(info)
                for info in archive.infolist()
                if not info.is_dir()
            }
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                found[member.name] = file.read()
    return found


def _listing_digest(members: Mapping[str, bytes]) -> str:
    lines = (f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in sorted(members))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
