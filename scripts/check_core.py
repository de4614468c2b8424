"""Count what the package adds to torch, import the packages that need no extra, and run their tests.

Run by an interpreter that has the package and pytest, and none of the packages of an extra. Importing `foveal.data`
there must end in the sentence that names the extra.
"""

import subprocess
import sys
from importlib import import_module, metadata
from importlib.util import find_spec

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from foveal.errors import MissingPackageError

CORE = (
    *("masking", "shapes", "batch_invariant", "specs", "inference", "distributions", "estimators"),
    *("attention", "networks", "models", "decoding", "testing"),
)
TOOLKIT = ("views", "data", "metrics", "tasks", "training", "planning", "inspection")
TESTS = (
    "tests/attention",
    "tests/estimators",
    "tests/inference/test_chain.py",
    "tests/networks/test_cells.py",
    "tests/networks/test_stacks.py",
    "tests/test_specs.py",
)


MOST_ADDED = 4


def main() -> int:
    """1 if a core package needs more than the core, or its tests fail."""
    assert find_spec("PIL") is None, "this environment has packages of an extra"
    added = sorted(_needed("foveal") - _needed("torch") - {"foveal", "torch"})
    print(f"pip install . adds to torch: {', '.join(added)}")
    assert len(added) <= MOST_ADDED, added
    for name in CORE:
        import_module(f"foveal.{name}")
    for name in TOOLKIT:
        told = _refusal(f"foveal.{name}")
        assert "pip install '.[toolkit]'" in told, f"importing foveal.{name} says: {told!r}"
    options = ("-q", "-p", "no:cacheprovider", *TESTS)
    return subprocess.run([sys.executable, "-m", "pytest", *options], check=False).returncode


def _needed(package: str) -> set[str]:
    """The package and all that it needs here, without extras."""
    found, waiting = set[str](), [package]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        needs = map(Requirement, metadata.requires(name) or ())
        waiting += [n.name for n in needs if n.marker is None or n.marker.evaluate({"extra": ""})]
    return found


def _refusal(package: str) -> str:
    """Return the module that importing a package misses; empty if the import works."""
    try:
        import_module(package)
    except MissingPackageError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    sys.exit(main())
