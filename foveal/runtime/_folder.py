"""The folder of an exported model: `manifest.json` has the size and SHA-256 of every other file.

Reading executes no code and opens no connection. Every size is compared with a limit before a file is read. Checksums
detect corruption and mixed-up files, not tampering: anyone with write access can replace the manifest.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ._errors import ExportedModelError

MANIFEST, MODEL, VOCABULARY, SELF_TEST = (
    "manifest.json",
    "model.json",
    "vocabulary.json",
    "selftest.jsonl",
)
FORMAT = 1  # increased when older runtimes cannot read new folders
_MOST_MANIFEST = 1 << 20
_MOST_JSON = 64 << 20
_MOST_GRAPH = 2 << 30
_SHOWN = 200  # characters of a value in an error


class Folder(NamedTuple):
    """The verified content of an exported folder; `graph` is the whole file of the graph."""

    path: Path
    model: Mapping[str, Any]
    vocabulary: Mapping[str, Any]
    graph: bytes


def read_folder(path: str | Path, graph: str = "model.onnx") -> Folder:
    """Read and verify the files that a runtime needs.

    Args:
        path: The folder.
        graph: Name of the file of the graph.

    Returns:
        The settings, the vocabularies and the graph.

    Raises:
        ExportedModelError: A file is missing, damaged, too large or written by a newer version.
    """
    path = Path(path)
    files = read_manifest(path)
    model, vocabulary = (
        json_of(path, name, verified(path, name, files, _MOST_JSON)) for name in (MODEL, VOCABULARY)
    )
    if not isinstance(model, dict) or not isinstance(vocabulary, dict):
        raise refused(path, f"{MODEL} and {VOCABULARY} must be JSON objects")
    return Folder(path, model, vocabulary, verified(path, graph, files, _MOST_GRAPH))


def read_manifest(path: Path) -> Mapping[str, Any]:
    """Return the sizes and checksums of the files of a folder."""
    file = path / MANIFEST
    if not file.is_file():
        raise ExportedModelError(
            f"{path}: expected an exported model, but the folder has no {MANIFEST}. Make one with "
            f"foveal export RUN --out {path}."
        )
    if file.stat().st_size > _MOST_MANIFEST:
        raise refused(path, f"{MANIFEST} has more than {_MOST_MANIFEST} bytes")
    data = json_of(path, MANIFEST, file.read_bytes())
    found = data.get("format") if isinstance(data, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or not found >= 1:
        raise refused(path, f"{MANIFEST} has no format")
    if found > FORMAT:
        raise ExportedModelError(
            f"{path}: written in format {found} by foveal {str(data.get('foveal'))[:20]}, this runtime reads formats up to "
            f"{FORMAT}. Install a newer foveal-runtime."
        )
    files = data.get("files")
    if not isinstance(files, dict):
        raise refused(path, f"{MANIFEST} lists no files")
    return files


def verified(path: Path, name: str, files: Mapping[str, Any], most: int) -> bytes:
    """Return the bytes of a file whose size and checksum are those of the manifest."""
    entry = files.get(name)
    if not isinstance(entry, dict) or set(entry) != {"size", "sha256"}:
        raise refused(path, f"{MANIFEST} has no size and sha256 for {name}")
    file = path / name
    if file.is_symlink() or not file.is_file():
        raise refused(path, f"{name} is missing or is not a file")
    size = file.stat().st_size
    if size > most:
        raise refused(path, f"{name} has {size:,} bytes, expected at most {most:,}")
    if size != entry["size"]:
        raise refused(path, f"{name} has {size} bytes, expected {str(entry['size'])[:_SHOWN]}")
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise refused(path, f"{name} has a wrong sha256 checksum")
    return content


def json_of(path: Path, name: str, content: bytes) -> Any:
    """Parse a JSON file."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise refused(path, f"{name} is not JSON: {str(error)[:_SHOWN]}") from None


def refused(path: Path, why: str) -> ExportedModelError:
    """Return the error for a folder that cannot be used."""
    return ExportedModelError(f"{path}: {why}. Restore the folder, or export the model again.")
