"""A lock on the folder of a run: only one process at a time can train in it.

The operating system holds the lock (`flock`) and releases it when the process ends, even if it is killed: a killed run
never leaves a folder locked. The file `.lock` names the holder and is deleted when the lock is released.
"""

import errno
import fcntl
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...errors import CheckpointError, SpecError

LOCK = ".lock"
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_PAUSE = 0.1  # seconds between two attempts
_MAX_HOLDER = 200  # bytes that name a holder


class Lock(NamedTuple):
    """The lock on a folder while it is held."""

    folder: Path


@contextmanager
def locked(folder: Path, *, patience: float = 0.0) -> Iterator[Lock]:
    """Hold the lock on a folder. A missing folder is created, and deleted at the end if it is still empty.

    Args:
        folder: The folder of a run.
        patience: Seconds to wait for another process to end.

    Yields:
        The lock.

    Raises:
        CheckpointError: If another process holds the lock.
        SpecError: If the folder cannot be created.
    """
    created = _create(folder)
    path = folder / LOCK
    descriptor = _acquire(path, time.monotonic() + patience)
    try:
        yield Lock(folder)
    finally:
        if descriptor is not None:
            path.unlink(missing_ok=True)  # before the release: the next process creates a new file
            os.close(descriptor)
        for empty in created:
            if not any(empty.iterdir()):
                empty.rmdir()


def _create(folder: Path) -> list[Path]:
    """Create the folder and its parents. Returns the folders that did not exist, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(
            f"{folder}: the folder of the run cannot be created ({error.strerror}). Use another "
            f"--out, a folder with write permission."
        ) from None
    return missing


def _acquire(path: Path, deadline: float) -> int | None:
    """Return the descriptor of the locked file, or None if the file system has no locks."""
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, _MAX_HOLDER, 0).decode("utf-8", "replace").strip()
            os.close(descriptor)
            if error.errno not in _BUSY:
                warnings.warn(
                    f"{path.parent}: this file system has no locks ({error.strerror}). Make sure that no "
                    f"other process trains in this folder.",
                    stacklevel=4,
                )
                return None
            if time.monotonic() >= deadline:
                raise CheckpointError(
                    f"{path.parent}: another process is training in this folder "
                    f"({holder or 'unknown process'}). Wait until it ends, stop it, or use another "
                    f"--out."
                ) from None
            time.sleep(_PAUSE)
            continue
        if _is_still(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)  # the previous holder has deleted the opened file


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SpecError(
            f"{path.parent}: the folder of the run is not writable ({error.strerror}). Use another --out."
        ) from None


def _is_still(path: Path, descriptor: int) -> bool:
    """Return True if the path still names the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
