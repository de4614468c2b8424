"""The tests in tests/unchecked, in a process of their own without shape checking: compiled code,
which is traced, and error messages, which a user sees where our tests would see a shape check.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

UNCHECKED = Path(__file__).resolve().parent / "unchecked"


SLOWEST = "test_compiled_structures.py"


@pytest.mark.timeout(900)  # compilers are slow on a machine that does something else besides
@pytest.mark.parametrize(
    "chosen", [(UNCHECKED / SLOWEST,), (UNCHECKED, f"--ignore={UNCHECKED / SLOWEST}")]
)
def test_without_shape_checks(chosen: tuple[str | Path, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib", *chosen],
        cwd=UNCHECKED.parent.parent,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
