"""The grid tests of this folder on the other paths: tensor operations, and kernels of each
instruction set.
"""

from pathlib import Path

import pytest

from tests.native.test_paths import NATIVE_PATHS, UNCHECKED, run

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
# The others call no kernels: every path computes them with the same operations.
WITH_KERNELS = "not ([Categorical or [Sparsemax or [Entmax)"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", ["pure", *NATIVE_PATHS[:-1]])  # the widest runs with all tests
def test_a_path_is_enumeration(path: str) -> None:
    files = (str(HERE / "test_grid.py"), str(HERE / "test_gradients.py"))
    run(path, *UNCHECKED, "-k", WITH_KERNELS, *files)
