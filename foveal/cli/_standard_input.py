"""The standard input, line by line."""

import os
import sys

from ..data import LineReader
from ..data._bytes import CHUNK


def standard_input() -> LineReader:
    """The lines that come on the standard input, as soon as they are there: a person may be typing."""
    descriptor = sys.stdin.fileno()
    return LineReader("standard input", chunks=iter(lambda: os.read(descriptor, CHUNK), b""))
