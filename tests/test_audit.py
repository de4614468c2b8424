"""The audit of what the server pulls in: that it sees all of it, and that it would see what is unsafe."""

import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from audit import advisories, audit, table  # noqa: E402


def test_what_is_pulled_in_is_pinned_and_not_known_to_be_unsafe() -> None:
    audited = {one.name: one for one in audit()}
    # Asked for by us, by one that we ask for, and by one that asks in turn.
    assert {"fastapi", "starlette", "anyio", "uvicorn", "h11", "torch"} <= set(audited)
    assert "pytest" not in audited
    assert [fault for one in audited.values() for fault in one.faults] == []
    assert "| h11 | 0.16.0 |" in table(list(audited.values()))


def test_faults_are_found() -> None:
    (h11,) = (one for one in audit() if one.name == "h11")
    (unsafe,) = replace(h11, installed="0.14.0", pinned="0.14.0").faults
    assert "CVE-2025-43859" in unsafe
    (missing,) = replace(h11, pinned=None).faults
    assert "constraints.txt" in missing
    (differing,) = replace(h11, installed="0.17.0").faults
    assert "0.17.0" in differing


def test_every_advisory_is_of_a_package_that_is_pulled_in() -> None:
    assert {one.package for one in advisories()} <= {one.name for one in audit()}
