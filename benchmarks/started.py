"""A command as a separate process, which prints its address on its first line."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO


class Started(NamedTuple):
    """A running command."""

    process: "subprocess.Popen[str]"
    address: str  # the first word of its output


@contextmanager
def started(words: Sequence[str], errors: TextIO, seconds: float) -> Iterator[Started]:
    """Run `foveal` with these arguments; it must print its address in time and is killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "foveal.cli", *words],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    ) as process:
        try:
            line = _first_line(process, seconds)
            assert line, f"it did not start: {Path(errors.name).read_text()[-2000:]}"
            yield Started(process, line.split()[0])
        finally:
            process.kill()
            process.wait(seconds)


def _first_line(process: "subprocess.Popen[str]", seconds: float) -> str:
    """Return the first line of the output, or an empty string if none arrives in time."""
    assert process.stdout is not None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([process.stdout], [], [], 1.0)[0]:
            return process.stdout.readline()
    return ""
