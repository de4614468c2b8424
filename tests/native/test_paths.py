"""The paths (PyTorch operations, kernels of each instruction set) agree, and each obeys the laws."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from .answers import differing

pytestmark = pytest.mark.slow

native = pytest.importorskip("foveal_native", reason="foveal-native is not installed")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WIDTHS = ("baseline", "avx2", "avx512")
# The instruction sets of this processor: each includes the previous ones.
NATIVE_PATHS = WIDTHS[: WIDTHS.index(native.instruction_set()) + 1]
LAWS = (
    "tests/distributions/test_laws.py::test_linear_chain",
    "tests/inference/test_chain.py",
    "tests/distributions/test_projective_tree.py::test_the_laws",
    "tests/distributions/test_span_tree.py::test_bracketings",
    "tests/distributions/test_span_tree.py::test_labelled_bracketings",
    "tests/distributions/test_semi_markov.py",
    "tests/distributions/test_alignment.py",
    "tests/distributions/test_spanning_tree.py::test_laws",
    "tests/distributions/test_spanning_tree.py::test_forbidden_arcs",
    "tests/distributions/test_k_subset.py::test_k_subset",
    "tests/distributions/test_sentinels.py",
)


# The same tests check shapes on the widest path; checking takes half of the time.
UNCHECKED = (
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:logging",
    "-o",
    "addopts=--import-mode=importlib",
)


def run(path: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "FOVEAL_KERNELS": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    out = tmp_path_factory.mktemp("pure") / "answers.pt"
    run("pure", str(HERE / "answers.py"), str(out))
    return torch.load(out)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NATIVE_PATHS)
def test_a_path_agrees_with_the_reference(
    path: str, reference: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    run(path, str(HERE / "answers.py"), str(tmp_path / "answers.pt"))
    found = torch.load(tmp_path / "answers.pt")
    assert list(differing(found, reference)) == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", ["pure", *NATIVE_PATHS[1:-1]])  # all tests use the widest
def test_a_path_obeys_the_laws(path: str) -> None:
    run(path, *UNCHECKED, *LAWS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NATIVE_PATHS[:-1])
def test_a_path_gives_nan_for_nan(path: str) -> None:
    run(path, *UNCHECKED, "tests/native/test_nan.py")
