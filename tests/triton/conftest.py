"""The Triton tests run in two processes, because Triton reads TRITON_INTERPRET when a kernel is defined:

    TRITON_INTERPRET=1 FOVEAL_KERNELS=triton python -m pytest tests/triton    kernels on CPU tensors
    FOVEAL_KERNELS=triton python -m pytest tests/triton                       compiled and traced kernels

Without foveal-triton, all of them are skipped.
"""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

CHOSEN = os.environ.get("FOVEAL_KERNELS") == "triton"
INTERPRETED = CHOSEN and os.environ.get("TRITON_INTERPRET") == "1"
MODULES = {path.name for path in Path(__file__).parent.glob("*.py")} - {"conftest.py"}
TESTS = {name for name in MODULES if name.startswith("test_")}
COMPILED = {"test_compiled.py"}

# Other processes collect no module, also not for its docstrings, because the imports need foveal-triton.
collect_ignore = sorted(MODULES if not CHOSEN else COMPILED if INTERPRETED else TESTS - COMPILED)


@pytest.fixture(autouse=True)
def quick_interpreter() -> Iterator[None]:
    """Run kernels faster, and without numpy's warnings: -inf - -inf and log 0 are intended."""
    if not INTERPRETED:
        yield
        return
    from tests.triton.checked import quick  # noqa: PLC0415 - needs Triton

    with quick(), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        yield
