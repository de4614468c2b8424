"""Checkpoints: everything that a run needs to go on, in one folder for each.

    checkpoints/step-000001200/
        last.safetensors     weights, optimizer, running mean of the weights
        best.safetensors     the weights with the best validation score so far
        carried.safetensors  the state of a text that goes on, if there is one
        state.json           step, scores, place in the data, settings
        manifest.json        size and sha256 of the others

A folder is written beside its place, synchronized and renamed into it: it is whole or not there. The
newest two are kept, so that there is an older one if the newest turns out to be torn. Tensors are
safetensors and the rest is JSON: loading executes nothing.
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
_FORMAT = 1  # raised when an older version could not read what this one writes
_PREFIX = "step-"
_TENSORS = ("last", "best", "carried")
_STATE = "state.json"


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """A run at the end of a step."""

    last: dict[str, Tensor]
    best: dict[str, Tensor]
    carried: dict[str, Tensor]
    state: dict[str, Any]  # what JSON can hold


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """The newest snapshot that is whole, and what was said of newer ones that are not."""

    snapshot: Snapshot
    folder: Path
    refusals: tuple[str, ...]


def write_checkpoint(folder: Path, step: int, snapshot: Snapshot) -> Path:
    """Write a snapshot below a folder and delete all but the newest few."""
    path = folder / f"{_PREFIX}{step:09d}"
    tensors = (snapshot.last, snapshot.best, snapshot.carried)
    files = {_file(name): _to_bytes(t) for name, t in zip(_TENSORS, tensors, strict=True)}
    files[_STATE] = json.dumps(snapshot.state, indent=1, allow_nan=False).encode()
    temporary = folder / f".{path.name}.{os.getpid()}"
    try:
        write_sealed(temporary, files, {"format": _FORMAT})
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the room
        raise
    if path.exists():
        shutil.rmtree(path)  # of a run that has been here before; no folder is renamed onto one
    temporary.rename(path)
    synchronize(folder)
    for old in _newest_first(folder)[KEPT:]:
        shutil.rmtree(old)
    return path


def find_checkpoint(folder: Path) -> Found | None:
    """The newest whole snapshot; None if there is none at all. `CheckpointError` if there are some
    and all are torn: to start again from nothing is for the user to say.
    """
    refusals = []
    for path in _newest_first(folder):
        try:
            return Found(snapshot=_read(path), folder=path, refusals=tuple(refusals))
        except CheckpointError as error:
            refusals.append(str(error))
    if refusals:
        raise CheckpointError(
            f"{folder}: none of its {len(refusals)} checkpoints can be used, expected one that is "
            f"whole. {' '.join(refusals)} To start again, delete {folder}."
        )
    return None


def clear_checkpoints(folder: Path, *, newer_than: int = -1) -> None:
    """Delete checkpoints of later steps, by default all, and what killed writers have left."""
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
    except OSError as error:  # a disk that is going bad
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}).") from error


def _file(name: str) -> str:
    return f"{name}.safetensors"


def _to_bytes(tensors: dict[str, Tensor]) -> bytes:
    """Copies, since safetensors refuses tensors that share memory, as views of one may."""
    return save({name: t.detach().clone().contiguous() for name, t in tensors.items()})
