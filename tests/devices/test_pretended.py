"""Run the files of tests/devices/pretended in processes in which a CUDA device seems to exist."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path.name for path in Path(__file__).with_name("pretended").glob("test_*.py"))
NUM_PROCESSES = 2  # a process for each file would import the package six times


@pytest.mark.timeout(900)  # on a busy machine
@pytest.mark.skipif(shutil.which("c++") is None, reason="the guards of the device need a compiler")
@pytest.mark.parametrize("first", range(NUM_PROCESSES))
def test_runs_on_a_pretended_device(first: int) -> None:
    files = FILES[first::NUM_PROCESSES]
    done = subprocess.run(
        [sys.executable, "-m", "tests.devices.run", *files, "--tb=short"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
