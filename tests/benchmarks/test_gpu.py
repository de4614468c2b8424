"""The tables of the Triton kernels, which need neither Triton nor a GPU to be read."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.results import Results

ROOT = Path(__file__).resolve().parents[2]
LIMITS = {"registers": {128}, "spills": {0}, "shared memory": {99 << 10, 64 << 10}}


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Return the module that makes tables of the page."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("docs_gpu")
    for name in [name for name in sys.modules if name.startswith("docs_")]:
        sys.modules.pop(name)


def test_every_compiled_kernel_meets_its_limits() -> None:
    results = Results.load(ROOT / "results/gpu_compile.json")
    assert not [row.name for row in results.rows if row.misses]
    targets = set()
    for row in results.rows:
        kernel, _, what = row.name.rpartition(": ")
        targets.add(kernel.rpartition(", ")[2])
        assert row.target in LIMITS[what], row.name
    assert targets == {"sm_80", "sm_90", "sm_120", "gfx942"}


def test_predictions_are_marked_and_above_their_limits() -> None:
    results = Results.load(ROOT / "results/gpu_predicted.json")
    assert "not measured" in results.spec["figures"]
    values = {row.name: row.value for row in results.rows}
    predicted = [name for name in values if name.endswith(", predicted")]
    assert len(predicted) * 2 == len(values)
    for name in predicted:
        assert values[name] > values[name.replace(", predicted", ", limit")]


def test_the_page_has_every_kernel_and_every_operation(pages: ModuleType) -> None:
    compiled = pages.gpu_table("compiled", ROOT / "results")
    for kernel in ("chain inside", "chain scan", "alignment trace", "ctc join", "**limit**"):
        assert f"| {kernel} |" in compiled
    predicted = pages.gpu_table("predicted", ROOT / "results")
    assert "| chain (16, 1000, 10), `train` |" in predicted
    assert "| CTC (16, 500, 60), `marginals` |" in predicted
