"""Get the files of a data set from local folders or from their source."""

import io
import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from ..errors import DataError
from ._catalog import DataFile, DataSet
from ._contents import content_digest, digest_of, packed, stored_as
from ._download import download

Advance = Callable[[int], None]


def fetch(wanted: DataSet, folders: Sequence[Path], advance: Advance) -> list[Path]:
    """Put the files of a data set into the data folder. Existing files with the right checksum are kept.

    Args:
        wanted: The data set.
        folders: Folders to take the files from: a folder with the data set's files, a folder that contains a folder
            with the name of the data set, or a checkout of the source. Without folders, files are downloaded.
        advance: Called with the number of additional bytes that are done.

    Returns:
        The files that were written.

    Raises:
        DataError: A file has another checksum, or cannot be found or downloaded; the message names the next step.
    """
    written: list[Path] = []
    lacking: list[DataFile] = []
    for file in wanted.files:
        path = wanted.folder / file.path
        if path.exists() and content_digest(path) == file.sha256:
            advance(file.size)
            continue
        found = _taken(wanted, file, folders) if folders else _downloaded(wanted, file)
        if found is None:
            lacking.append(file)
            continue
        where, data = found
        _check(file, data, where)
        _write(path, stored_as(data, file.path))
        written.append(path)
        advance(file.size)
    if lacking:
        raise DataError(_what_to_do(wanted, lacking, folders))
    return written


def _taken(wanted: DataSet, file: DataFile, folders: Sequence[Path]) -> tuple[str, bytes] | None:
    """Return the location and the bytes of a file in the first folder that contains it; None if no folder does."""
    names = (file.path, file.path.removesuffix(".gz"), file.upstream or file.path)
    for folder in folders:
        for root in (folder / wanted.name, folder):
            for name in names:
                data = _read(root, name, file)
                if data is not None:
                    return str(root / name), data
    return None


def _read(root: Path, name: str, file: DataFile) -> bytes | None:
    """Return the bytes of a file, an archive member, or a folder packed as an archive; None if it does not exist."""
    outer, _, member = name.partition(":")
    path = root / outer
    if member:
        return _member(path.read_bytes(), member) if path.is_file() else None
    if outer.endswith("/"):
        return packed(_files_in(path, file), file.path) if path.is_dir() else None
    return path.read_bytes() if path.is_file() else None


def _files_in(folder: Path, file: DataFile) -> dict[str, bytes]:
    """Return the files of a folder by their names in the archive, which include the folder in a tar file only."""
    root = folder.parent if file.path.endswith(".tar.gz") else folder
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def _member(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name)


def _downloaded(wanted: DataSet, file: DataFile) -> tuple[str, bytes] | None:
    """Download a file from its source, and return the address and the bytes; None if it has no address."""
    if wanted.files_at is None or file.upstream is None or file.upstream.endswith("/"):
        return None
    outer, _, member = file.upstream.partition(":")
    address = wanted.files_at + quote(outer)
    try:
        data = download(address)
    except DataError as error:
        raise DataError(
            f"{error} Try again, or download the files from {wanted.source} and pass their folder: "
            f"foveal data get {wanted.name} --from FOLDER"
        ) from None
    return address, _member(data, member) if member else data


def _check(file: DataFile, data: bytes, where: str) -> None:
    got = digest_of(data, file.path)
    if got != file.sha256:
        raise DataError(
            f"{where}: the checksum is {got}, expected {file.sha256}. The file is damaged or has "
            f"another version: download it again. Nothing was written."
        )


def _write(path: Path, data: bytes) -> None:
    """Write a file atomically: a reader sees either the complete file or no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _what_to_do(wanted: DataSet, lacking: Sequence[DataFile], folders: Sequence[Path]) -> str:
    names = ", ".join(file.path for file in lacking[:3])
    more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
    looked = f" in {', '.join(map(str, folders))}" if folders else ""
    by_hand = wanted.by_hand or f"Download them from {wanted.source}" + (
        f" at commit {wanted.revision}." if wanted.revision else "."
    )
    verb = "not found" if folders else "cannot be downloaded one by one"
    return (
        f"{wanted.name}: {len(lacking)} of {len(wanted.files)} files {verb}{looked}: {names}{more}. "
        f"{by_hand} Then: foveal data get {wanted.name} --from FOLDER"
    )
