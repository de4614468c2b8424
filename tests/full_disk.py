"""A simulated full disk for the current process."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit all files of this process to 2,000 bytes.

    Python writes no bytecode meanwhile: it would truncate the file of a newly imported module without
    an error, and no process could import that module any more.
    """
    limits, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), not sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sys.dont_write_bytecode = not compiles
