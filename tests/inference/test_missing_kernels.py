"""Without the kernels, the library warns once."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# None in sys.modules makes an import fail as if the package were not installed.
PROGRAM = """
import sys, warnings
sys.modules["foveal_native"] = None
import torch
from foveal.distributions import LinearChain
from foveal.errors import MissingKernelsWarning
chain = LinearChain(torch.zeros(2, 3, 2), torch.zeros(2, 2))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    chain.log_partition(), chain.marginals(), chain.argmax()
for warning in caught:
    assert warning.category is MissingKernelsWarning
    print(warning.message)
"""


@pytest.mark.parametrize(("choice", "count"), [(None, 1), ("pure", 0)])
def test_missing_kernels_are_told_of_once(choice: str | None, count: int) -> None:
    environment = {key: part for key, part in os.environ.items() if key != "FOVEAL_KERNELS"}
    if choice is not None:
        environment["FOVEAL_KERNELS"] = choice
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == count
    assert all("pip install" in line and "FOVEAL_KERNELS=pure" in line for line in lines)
