"""Damaged images, clips, archives and videos: each is read, or refused in one line; nothing crashes,
and none takes memory by what its header promises.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("mutated_images.py")
SECONDS = 240  # on a machine that does ten other things; by itself it takes a few


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
@pytest.mark.parametrize(
    ("kind", "number"), [("stills", 500), ("clips", 250), ("archives", 100), ("videos", 100)]
)
def test_damaged_files_are_read_or_refused_in_bounded_memory(kind: str, number: int) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), kind, str(number)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    refused, taken = map(int, done.stdout.split())
    assert number / 4 < refused <= number  # the mutations do harm
    assert taken < 100 << 20
