"""Thousands of random calls of all ops in a separate process: no argument causes a crash."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

DRIVER = Path(__file__).resolve().parent / "fuzz_ops.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DRIVER), *arguments],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


@pytest.mark.timeout(300)
def test_no_drawn_call_crashes() -> None:
    done = run("--calls", "4300", "--seed", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4300 calls of 43 ops" in done.stdout
    taken = int(done.stdout.split(" taken")[0].split()[-1])
    assert 1000 < taken < 3000  # valid and invalid arguments are drawn


def test_all_ops_are_drawn() -> None:
    registered = {
        schema.name
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("foveal_native::")
    }
    assert len(registered) == 44  # and `search_pack`, which makes arguments of others
