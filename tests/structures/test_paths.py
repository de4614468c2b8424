"""The grid of this folder on the other paths: tensor operations, and kernels of each instruction set."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
native = pytest.importorskip("sightline_native", reason="sightline-native is not installed")
WIDTHS = ("baseline", "avx2", "avx512")
# The widest set of this processor runs with all tests.
OTHERS = WIDTHS[: WIDTHS.index(native.instruction_set())]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", ["pure", *OTHERS])
def test_a_path_is_enumeration(path: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:logging"),
            *("-o", "addopts=--import-mode=importlib"),  # shapes are checked in this process
            *(HERE / "test_grid.py", HERE / "test_gradients.py"),
        ],
        cwd=HERE.parents[1],
        env={**os.environ, "SIGHTLINE_KERNELS": path},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
