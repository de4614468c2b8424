"""The lock files of CI pin the versions of constraints.txt with checksums, and cover all
requirements.
"""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}")


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield import_module("audit")
    sys.modules.pop("audit", None)


def locked(name: str) -> dict[str, str]:
    """Return versions by name."""
    first, *lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert first.startswith("# Written by scripts/lock.py")
    found = [LINE.fullmatch(line) for line in lines]
    assert None not in found, "a line without its version or checksum"
    return {one["name"]: one["version"] for one in found if one is not None}


@pytest.mark.parametrize(
    "name",
    [
        "requirements-ci.txt",
        "requirements-ci-user.txt",
        "requirements-pydoclint.txt",
        "requirements-triton.txt",
    ],
)
def test_versions_are_those_of_the_constraints(audit: ModuleType, name: str) -> None:
    pinned = audit.constraints()
    assert {one: pinned.get(one) for one in locked(name)} == locked(name)


def test_all_that_is_pinned_is_locked_but_torch(audit: ModuleType) -> None:
    """torch has one version and a file for each kind of machine; see scripts/lock.py."""
    own = locked("requirements-pydoclint.txt") | locked("requirements-triton.txt")
    everywhere = locked("requirements-ci.txt") | own
    assert set(audit.constraints()) - set(everywhere) == {"torch"}


def test_the_parser_of_pydoclint_is_not_installed_next_to_the_parser_of_tyro() -> None:
    """Both packages contain the folder docstring_parser, so one would overwrite the other."""
    assert "docstring-parser" in locked("requirements-ci.txt")
    assert "docstring-parser-fork" not in locked("requirements-ci.txt")
    assert "docstring-parser" not in locked("requirements-pydoclint.txt")


def test_the_package_alone_is_locked_with_less(audit: ModuleType) -> None:
    alone, everything = locked("requirements-ci-user.txt"), locked("requirements-ci.txt")
    assert alone.items() <= everything.items()
    assert {"numpy", "safetensors", "hatchling"} <= set(alone)
    assert not {"ray", "fastapi", "pillow"} & set(alone)
    assert {one.name for one in audit.audit()} - set(everything) == {"torch"}
