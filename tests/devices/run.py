"""Run the tests of `pretended` in a process in which a CUDA device seems to exist: python -m tests.devices.run [ARGUMENTS]"""

import sys
from pathlib import Path

from tests.devices.library import install

PRETENDED = Path(__file__).with_name("pretended")


def main() -> int:
    """Load the guards, and then pytest, whose plugins import torch."""
    install()
    import pytest  # noqa: PLC0415 - after the guards
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    options = ["-q", "-o", "addopts=--import-mode=importlib", *sys.argv[1:]]
    return int(pytest.main([*options, str(PRETENDED)]))


if __name__ == "__main__":
    sys.exit(main())
