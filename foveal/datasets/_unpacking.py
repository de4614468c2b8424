"""Unpacking of archives from strangers. Early versions of Python 3.11 have no filters for it."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Write the files of an archive below a folder, without their owners, permissions and times.

    Args:
        archive: The archive, open for reading.
        folder: The folder, which may be missing.

    Raises:
        tarfile.TarError: A file would be outside of the folder, or is no regular file. The files before it are written.
    """
    root = folder.resolve()
    for member in archive:
        path = (root / member.name).resolve()
        content = archive.extractfile(member) if member.isreg() else None
        if not path.is_relative_to(root) or (content is None and not member.isdir()):
            raise tarfile.TarError(f"{member.name!r} is not a file below the folder of the archive")
        if content is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
