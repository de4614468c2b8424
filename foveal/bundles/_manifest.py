"""A set of files with a manifest: `manifest.json` has the size and SHA-256 of each file.

Saving is atomic, even in a folder that contains other files. `write_sealed` writes and synchronizes the new files as
`name.new`, then renames the new manifest over the old one, and finally renames the files. The rename of the manifest
is the commit point. A reader at any time in between finds each file of the manifest under one of its two names.

Checksums detect corruption and mixed-up files, not tampering: anyone with write access can replace the manifest.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import BundleError

MANIFEST = "manifest.json"
_NEW = ".new"
_SHORT = 12  # digits of a seal in messages
_SHOWN = 200  # characters of a value in an error
_MOST_BYTES = 1 << 20  # size limit of a manifest; ours has a few hundred bytes


class Sealed(NamedTuple):
    """The verified content of a set of files."""

    about: dict[str, Any]  # the other fields of the manifest
    files: dict[str, bytes]


def write_sealed(folder: Path, files: Mapping[str, bytes], about: Mapping[str, Any]) -> None:
    """Write files with a manifest, replacing the previous version."""
    folder.mkdir(parents=True, exist_ok=True)
    _settle(folder, files)
    listed = {name: _entry(content) for name, content in files.items()}
    manifest = _manifest_bytes({**about, "files": listed})
    try:
        for name, content in {**files, MANIFEST: manifest}.items():
            with (folder / (name + _NEW)).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        for name in (*files, MANIFEST):
            (folder / (name + _NEW)).unlink(missing_ok=True)  # frees space if the disk is full
        raise
    for name in [MANIFEST, *files]:
        (folder / (name + _NEW)).replace(folder / name)
        synchronize(folder)


def _settle(folder: Path, names: Collection[str]) -> None:
    """Complete a save that was interrupted after the rename of its manifest. Some of its files are still named
    `name.new`, and the next save would overwrite them.
    """
    try:
        listed = _manifest(folder).get("files")
    except BundleError:
        return
    if not isinstance(listed, dict):
        return
    for name in names:
        new = folder / (name + _NEW)
        if new.is_file() and listed.get(name) == _entry(new.read_bytes()):
            new.replace(folder / name)
            synchronize(folder)


def read_sealed(folder: Path, names: Collection[str], formats: Collection[int]) -> Sealed:
    """Read and verify the files that `write_sealed` wrote.

    Args:
        folder: The folder of the files.
        names: The required files; the manifest may list no others.
        formats: Supported values of the manifest's `format`.

    Returns:
        The fields of the manifest, and the content of each file.

    Raises:
        BundleError: A file is missing, damaged, or in an unsupported format.
    """
    about = _manifest(folder)
    if about["format"] not in formats:
        raise BundleError(
            f"{folder}: written in format {str(about['format'])[:_SHOWN]}, expected "
            f"{' or '.join(map(str, formats))}. Use the version of foveal that wrote it, or newer."
        )
    listed = about.pop("files", None)
    if not isinstance(listed, dict) or set(listed) != set(names):
        got = ", ".join(sorted(map(str, listed))) if isinstance(listed, dict) else repr(listed)
        raise _refusal(
            folder,
            f"{MANIFEST} lists {got[:_SHOWN] or 'no files'}, expected {', '.join(names)}",
        )
    return Sealed(about, {name: _verified(folder, name, listed[name]) for name in names})


def seal_of(folder: Path) -> str:
    """Return an identifier of the saved version, or an empty text if there is none. This does not verify the files;
    `read_sealed` does.
    """
    try:
        return str(json.loads((folder / MANIFEST).read_bytes())["seal"])[:_SHORT]
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        if not folder.is_dir():
            raise BundleError(
                f"{folder}: this folder does not exist. Use the --out folder of a training run."
            )
        raise BundleError(
            f"{folder}: expected a model, but the folder has no {MANIFEST}; training may not have "
            f"finished. Use the --out folder of a finished training run."
        )
    if path.stat().st_size > _MOST_BYTES:
        raise _refusal(folder, f"{MANIFEST} has more than {_MOST_BYTES} bytes")
    content = path.read_bytes()
    try:
        data = json.loads(content)
        whole = isinstance(data, dict) and isinstance(data.pop("seal"), str)
        whole = whole and "format" in data and content == _manifest_bytes(data)
    except (ValueError, KeyError, RecursionError):
        whole, data = False, {}
    if not whole:
        raise _refusal(folder, f"{MANIFEST} has changed")
    return data


def _verified(folder: Path, name: str, entry: Any) -> bytes:
    """Return the bytes of a file under its name or, after an interrupted save, under its new name."""
    if not isinstance(entry, dict) or set(entry) != {"size", "sha256"}:
        raise _refusal(folder, f"{MANIFEST} has no size and sha256 for {name}")
    reasons = []
    for path in (folder / name, folder / (name + _NEW)):
        if path.is_symlink() or not path.is_file():
            reasons.append(f"{name} is not a file" if path.exists() else f"{name} is missing")
        elif path.stat().st_size != entry["size"]:
            reasons.append(
                f"{name} has {path.stat().st_size} bytes, expected {str(entry['size'])[:_SHOWN]}"
            )
        elif _digest(content := path.read_bytes()) != entry["sha256"]:
            reasons.append(f"{name} has a wrong sha256 checksum")
        else:
            return content
    raise _refusal(folder, reasons[0])


def _refusal(folder: Path, why: str) -> BundleError:
    return BundleError(
        f"{folder}: incomplete or damaged: {why}. Nothing was loaded; restore the folder "
        f"from a copy, or train again."
    )


def _manifest_bytes(data: Mapping[str, Any]) -> bytes:
    """Serialize a manifest, with the digest of all other fields as its seal."""
    body = json.dumps(data, indent=1, sort_keys=True)
    return json.dumps({**data, "seal": _digest(body.encode())}, indent=1, sort_keys=True).encode()


def _entry(content: bytes) -> dict[str, Any]:
    """Return the manifest entry of a file."""
    return {"size": len(content), "sha256": _digest(content)}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def synchronize(folder: Path) -> None:
    """Flush a directory to disk, so its entries survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
