"""Run tests/devices/pretended in a process of its own, in which a CUDA device seems to exist."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(900)  # on a busy machine
@pytest.mark.skipif(shutil.which("c++") is None, reason="the guards of the device need a compiler")
def test_everything_runs_on_a_pretended_device() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.devices.run", "--tb=short"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
