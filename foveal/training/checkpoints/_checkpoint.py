"""Checkpoints: everything that a run needs to resume, in one folder per checkpoint.

    checkpoints/step-000001200/
        last.safetensors     weights, optimizer, moving average of the weights
        best.safetensors     the weights with the best validation score so far
        carried.safetensors  the recurrent state of running text, if there is one
        state.json           step, scores, position in the data, settings
        manifest.json        size and sha256 of the other files

Each checkpoint is written to a temporary folder, synced and renamed, so it is either complete or absent. The newest two
are kept, in case the newest turns out to be damaged. Tensors are stored as safetensors and all other state as JSON:
loading executes no code.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ...bundles._manifest import read_sealed, synchronize, write_sealed
from ...errors import BundleError, CheckpointError

KEPT = 2
_FORMAT = 1  # increase if an older version cannot read the new files
_PREFIX = "step-"
_TENSORS = ("last", "best", "carried")
_STATE = "state.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """The state of a run after a step."""

    last: dict[str, Tensor]
    best: dict[str, Tensor]
    carried: dict[str, Tensor]
    state: dict[str, Any]  # JSON values


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """The newest complete snapshot, and the errors of newer ones that are damaged."""

    snapshot: Snapshot
    folder: Path
    refusals: tuple[str, ...]


def write_checkpoint(folder: Path, step: int, snapshot: Snapshot) -> Path:
    """Write a snapshot to a folder and delete older ones, except the newest few."""
    path = folder / f"{_PREFIX}{step:09d}"
    tensors = (snapshot.last, snapshot.best, snapshot.carried)
    files = {_file(name): _to_bytes(t) for name, t in zip(_TENSORS, tensors, strict=True)}
    files[_STATE] = json.dumps(snapshot.state, indent=1, allow_nan=False).encode()
    temporary = folder / f".{path.name}.{os.getpid()}"
    try:
        write_sealed(temporary, files, {"format": _FORMAT})
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the space
        raise
    if path.exists():
        shutil.rmtree(path)  # from an earlier run; a folder cannot be renamed onto an existing one
    temporary.rename(path)
    synchronize(folder)
    for old in _newest_first(folder)[KEPT:]:
        shutil.rmtree(old)
    return path


def find_checkpoint(folder: Path) -> Found | None:
    """Return the newest complete snapshot, or None if there is no checkpoint.

    Args:
        folder: Folder of the checkpoints.

    Returns:
        The snapshot, its folder, and messages about newer checkpoints that are damaged.

    Raises:
        CheckpointError: If all checkpoints are damaged; the user must decide to start again.
    """
    refusals = []
    for path in _newest_first(folder):
        try:
            return Found(snapshot=_read(path), folder=path, refusals=tuple(refusals))
        except CheckpointError as error:
            refusals.append(str(error))
    if refusals:
        raise CheckpointError(
            f"{folder}: expected a complete checkpoint, found none among {len(refusals)}. "
            f"{' '.join(refusals)} To start again, delete {folder}."
        )
    return None


def clear_checkpoints(folder: Path, *, newer_than: int = -1) -> None:
    """Delete checkpoints of later steps, by default all, and the temporary folders of killed processes."""
    for leftover in folder.glob(f".{_PREFIX}*"):
        shutil.rmtree(leftover)
    for path in _newest_first(folder):
        if int(path.name.removeprefix(_PREFIX)) > newer_than:
            shutil.rmtree(path)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_PREFIX}*"), reverse=True)


def _read(path: Path) -> Snapshot:
    try:
        files = read_sealed(path, (*map(_file, _TENSORS), _STATE), (_FORMAT,)).files
        tensors = {name: load(files[_file(name)]) for name in _TENSORS}
        return Snapshot(**tensors, state=json.loads(files[_STATE]))
    except (BundleError, SafetensorError, ValueError) as error:
        raise CheckpointError(str(error)) from error
    except OSError as error:  # a failing disk
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error


def _file(name: str) -> str:
    return f"{name}.safetensors"


def _to_bytes(tensors: dict[str, Tensor]) -> bytes:
    """Serialize copies on the CPU, because safetensors refuses tensors that share memory."""
    copies = {name: tensor.detach().to("cpu", copy=True) for name, tensor in tensors.items()}
    return save({name: tensor.contiguous() for name, tensor in copies.items()})
