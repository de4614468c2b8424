"""Each damaged image, clip, archive or video is read, or refused with an error of one line. Nothing
crashes, and no header makes the decoder allocate the memory that it promises.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("mutated_images.py")
NUMBERS = {"stills": 500, "clips": 250, "archives": 100, "videos": 100}
SECONDS = 240  # on a busy machine; otherwise it takes a few seconds


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_damaged_files_are_read_or_refused_in_bounded_memory() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *(f"{kind}={number}" for kind, number in NUMBERS.items())],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    for kind, number in NUMBERS.items():
        assert number / 4 < told["refused"][kind] <= number  # the mutations do harm
    assert told["bytes"] < 100 << 20
