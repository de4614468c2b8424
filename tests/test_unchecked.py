"""Run tests/unchecked in a separate process without shape checking: compiled code, which is traced, and
error messages, where a shape check would come before the message that a user sees.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

UNCHECKED = Path(__file__).resolve().parent / "unchecked"


SLOWEST = "test_compiled_structures.py"


@pytest.mark.timeout(900)  # compilers are slow on a busy machine
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
