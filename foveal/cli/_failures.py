"""Error messages for users: one line with the problem and the remedy.

An error that is not listed here is a bug, and keeps its traceback.
"""

import errno
import os
import re

from ..datasets._folder import advice
from ..errors import FovealError, size_text

_NOT_THERE = "this path does not exist and cannot be created. Check the path."
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_FOLDER = (errno.EEXIST, errno.ENOTDIR)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# Torch's messages for insufficient memory, and for a tensor whose size in bytes overflows.
_ALLOCATION = re.compile(r"you tried to allocate (\d+) bytes")
_OVERFLOW = "Storage size calculation overflowed"


def told(error: Exception) -> str | None:
    """Return the line for an error; None if it is a bug."""
    if isinstance(error, FovealError):
        return str(error)
    if isinstance(error, OSError):
        return _told_by_system(error)
    if isinstance(error, MemoryError):
        return _too_large("")
    found = _ALLOCATION.search(str(error))
    if found is not None:
        return _too_large(f": one tensor needs {size_text(int(found[1]))}")
    return _too_large(": one tensor needs over 1 EB") if _OVERFLOW in str(error) else None


def _told_by_system(error: OSError) -> str:
    """Describe an error of the operating system."""
    path = "" if error.filename is None else f"{os.fspath(error.filename)}: "
    if error.errno in _FULL:
        return f"{path}the disk is full. Free some space, then run the same command again."
    if error.errno in _NO_FOLDER:
        return f"{path}expected a folder, got a file. Use another path."
    if error.errno in _FORBIDDEN:
        return f"{path}{_reason(error)}. Use another path, or change the permissions."
    if error.errno == errno.ENOENT:
        command = advice(os.fspath(error.filename)) if error.filename is not None else None
        return f"{path}this file does not exist. {command}" if command else f"{path}{_NOT_THERE}"
    return f"{path}{_reason(error)}. Add --verbose to see the traceback."


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).lower()


def _too_large(detail: str) -> str:
    return (
        f"not enough memory{detail}. Reduce the model size, for example --set encoder.hidden_size, "
        f"or the batch size, --set training.batch_tokens."
    )
