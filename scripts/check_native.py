"""Fail if an installed `foveal-native` is not used automatically, or gives other results.

Run by an interpreter that has both packages installed, away from the checkout: once as they are,
once with FOVEAL_KERNELS=pure.
"""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import torch
from foveal.distributions import LinearChain
from foveal.inference import _native
torch.manual_seed(0)
chain = LinearChain(torch.randn(3, 5, 2), torch.randn(2, 2))
print(_native.serves(chain.unary), *(f"{x:.5f}" for x in chain.marginals().flatten().tolist()))
"""


def answer(kernels: str) -> list[str]:
    """Whether kernels are in use, and marginals."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=elsewhere,
            env={**os.environ, "FOVEAL_KERNELS": kernels},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    if done.returncode != 0:
        raise SystemExit(f"the program failed:\n{done.stderr}")
    return done.stdout.split()


def main() -> int:
    """Compare both; 1 if they are not as they should be."""
    (native, *found), (pure, *expected) = answer(""), answer("pure")
    works = (native, pure, found) == ("True", "False", expected)
    print(
        "the kernels are", "picked up and agree" if works else f"not in order: {found} {expected}"
    )
    return 0 if works else 1


if __name__ == "__main__":
    sys.exit(main())
