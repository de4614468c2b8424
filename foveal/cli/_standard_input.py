"""The standard input, line by line."""

import os
import sys

from ..data import LineReader
from ..data._bytes import CHUNK


def standard_input() -> LineReader:
    """Yield the lines of the standard input as soon as they arrive: a person may be typing."""
    descriptor = sys.stdin.fileno()
    return LineReader("standard input", chunks=iter(lambda: os.read(descriptor, CHUNK), b""))
