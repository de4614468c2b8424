"""`python -m benchmarks.gpu`: its checks and its measurements, with the interpreter in place of a GPU."""

from typing import Any

import pytest
import torch

from benchmarks.gpu import laws, measuring
from benchmarks.gpu.cases import FAMILIES
from benchmarks.gpu.laws import KINDS, law_rows
from benchmarks.gpu.measuring import obstacle, speed_rows
from benchmarks.timing import Plan
from foveal.inference import _triton
from tests.triton.structures import served

CPU = torch.device("cpu")
SMALL: dict[str, tuple[int, ...]] = {
    "chain": (2, 4, 2),
    "alignment": (2, 1, 2),
    "CTC": (2, 5, 2),
    "semi-Markov": (1, 3, 2, 2),
}
TREES = {"projective tree": (1, 2), "span tree": (1, 2)}
SHORT = Plan(rounds=1, least_rounds=1, budget=0.0, block=0.0, warm_up=0.0)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "REPETITIONS", 1)


@pytest.mark.parametrize("family", SMALL)
def test_the_laws_hold(family: str) -> None:
    with served():
        rows = list(law_rows(family, [SMALL[family]], CPU, [torch.float32]))
    assert len(rows) == len(KINDS) * (4 if family == "CTC" else 6)
    assert not [row.name for row in rows if row.misses]


def test_a_wrong_kernel_breaks_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _triton.ops_of

    class Wrong:
        """Ops whose marginals are slightly off."""

        def __getattr__(self, name: str) -> Any:
            op = getattr(right(torch.zeros(1)), name).default
            off = name == "chain_marginals"

            class Op:
                @staticmethod
                def default(*given: Any) -> Any:
                    found = op(*given)
                    return (found[0], found[1] * 1.0001, found[2]) if off else found

            return Op

    monkeypatch.setattr(laws, "KINDS", ("ordinary",))
    monkeypatch.setattr("foveal.inference.chain._native.ops_of", lambda _: Wrong())
    rows = law_rows("chain", [SMALL["chain"]], CPU, [torch.float32])
    missed = {row.name.rpartition(": ")[2] for row in rows if row.misses}
    assert "marginals" in missed
    assert "argmax" not in missed


@pytest.mark.parametrize("family", [family.name for family in FAMILIES])
def test_every_operation_is_measured(family: str) -> None:
    size = {**SMALL, **TREES}[family]
    with served():
        rows = list(speed_rows(family, size, CPU, SHORT))
    names = [row.name for row in rows]
    assert f"{family} log_partition {size}, kernels" in names
    assert f"{family} log_partition {size} vs {measuring.REFERENCE}" in names
    assert all(row.value > 0 for row in rows)


def test_a_machine_without_a_gpu_is_told_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert measuring.main() == 2
    told = capsys.readouterr().err
    assert "expected a GPU that torch can use, got torch" in told
    assert "Run it on a machine with a GPU" in told


def test_kernels_that_are_off_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert obstacle(CPU) is None
    monkeypatch.setattr(_triton, "_IN_USE", False)
    assert "got the reference passes" in (obstacle(CPU) or "")
