"""Run tests of `pretended` in a process in which a CUDA device seems to exist.

python -m tests.devices.run                     all
python -m tests.devices.run test_tasks.py -x    of one file, with arguments for pytest
"""

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
    files = [str(PRETENDED / each) for each in sys.argv[1:] if each.endswith(".py")]
    options = [each for each in sys.argv[1:] if not each.endswith(".py")]
    plain = ["-q", "-o", "addopts=--import-mode=importlib"]
    return int(pytest.main([*plain, *options, *(files or [str(PRETENDED)])]))


if __name__ == "__main__":
    sys.exit(main())
