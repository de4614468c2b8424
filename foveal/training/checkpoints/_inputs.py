"""Fingerprints of the files that a run reads, saved in `inputs.json` and compared when the run is resumed.

A file is identified by its size and the SHA-256 of its bytes, so you may move or copy it, but not edit it. The whole
file is hashed: at about a gigabyte per second, this is fast compared with building the vocabulary, and it detects every
edit. For a bundle or a prepared corpus, the manifest is hashed; for a folder of images, the names and sizes; for a
source without files, its settings. Images that are named in a list are not hashed.
"""

import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ...bundles._manifest import MANIFEST
from ...data import SourceSpec
from ...data.streams._prepared import CORPUS, PreparedCorpus
from ...errors import CheckpointError, DataError
from ...specs import to_json
from ._whole import replace_text

INPUTS = "inputs.json"
_MANIFESTS = (MANIFEST, CORPUS)
_ABOUT = {
    "train": "training",
    "dev": "validation",
    "test": "test",
    "start_from": "initial weights",
    "word_vectors": "word vectors",
}


class Input(NamedTuple):
    """One file or folder that a run reads."""

    path: str
    size: int  # bytes
    sha256: str


Inputs: TypeAlias = Mapping[str, Sequence[Input]]  # by purpose: train, dev, ...


def inputs_of(source: SourceSpec | PreparedCorpus) -> list[Input]:
    """Return the fingerprints of the files of a source, in reading order."""
    if isinstance(source, PreparedCorpus):
        return [input_of(source.path)]
    files = [input_of(file) for shard in source.shards() for file in shard.files]
    return files or [_settings(source)]


def _settings(source: SourceSpec) -> Input:
    """Return the fingerprint of the settings of a source without files."""
    text = to_json(source, SourceSpec).encode()
    return Input(source.kind, len(text), hashlib.sha256(text).hexdigest())


def input_of(path: str) -> Input:
    """Return the fingerprint of a file or a folder."""
    where = Path(path)
    try:
        if where.is_dir():
            manifest = next((where / name for name in _MANIFESTS if (where / name).is_file()), None)
            if manifest is None:
                return _listing(where)
            where = manifest
        found = where.stat()
        return Input(path, found.st_size, _digest(str(where), found.st_size, found.st_mtime_ns))
    except OSError as error:
        raise DataError(
            f"{path}: cannot read the file ({error.strerror}). Use a file that exists and that you "
            f"have permission to read."
        ) from None


def check_inputs(folder: Path, now: Inputs) -> None:
    """Compare the files of a run with the files that it started with.

    A test set may be added later, and runs of older versions have no record to compare with.

    Args:
        folder: Folder of the run.
        now: Files of the run, as they are now.

    Raises:
        CheckpointError: If the files differ.
    """
    try:
        rows = json.loads((folder / INPUTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for role, about in _ABOUT.items():
        then = [Input(**row) for row in rows.get(role, ())]
        files = list(now.get(role, ()))
        if role == "test" and not (then and files):
            continue
        if [one.sha256 for one in then] != [one.sha256 for one in files]:
            raise CheckpointError(
                f"{_difference(about, then, files)} The run in {folder} would resume with other data "
                f"than it started with. Use the same files and columns as before, start again with "
                f"--fresh (resume=False in Python), or use another --out."
            )


def write_inputs(folder: Path, inputs: Inputs) -> None:
    """Save the fingerprints in the folder of a run."""
    rows = {role: [one._asdict() for one in files] for role, files in inputs.items() if files}
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    replace_text(folder / INPUTS, text + "\n")


def _difference(role: str, then: Sequence[Input], now: Sequence[Input]) -> str:
    if [one.path for one in then] == [one.path for one in now]:
        before, after = next((a, b) for a, b in zip(then, now, strict=True) if a.sha256 != b.sha256)
        return (
            f"{after.path} ({role}) has changed since the run started: it had {before.size:,} bytes "
            f"with SHA-256 {before.sha256[:12]}, and now has {after.size:,} bytes with "
            f"{after.sha256[:12]}."
        )
    return (
        f"the {role} files differ: the run started with {_names(then)}, and now gets {_names(now)}, "
        f"with other contents."
    )


def _names(files: Sequence[Input]) -> str:
    names = [one.path for one in files[:3]]
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(names) + more if names else "none"


@functools.lru_cache(maxsize=4096)
def _digest(path: str, size: int, changed: int) -> str:
    """Return the SHA-256 of a file. Size and modification time are the key of a cache: a command compares its files
    before it writes anything, and again when training starts.
    """
    del size, changed
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listing(folder: Path) -> Input:
    names, total = hashlib.sha256(), 0
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = Path(parent, name)
            size = path.stat().st_size
            names.update(f"{path.relative_to(folder)}\t{size}\n".encode("utf-8", "surrogateescape"))
            total += size
    return Input(str(folder), total, names.hexdigest())
