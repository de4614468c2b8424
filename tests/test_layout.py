"""The layout of the package: small folders, a root that names every package, a reference for every public name."""

import json
import re
from pathlib import Path

import pytest

import foveal

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "foveal"
MOST_FILES, MOST_NAMES = 20, 391
PUBLIC_NAMES: dict[str, list[str]] = json.loads(
    (ROOT / "tests/public_names.json").read_text(encoding="utf-8")
)


def test_no_folder_has_too_many_files() -> None:
    folders = [path.parent for path in PACKAGE.rglob("__init__.py")]
    sizes = {folder.relative_to(PACKAGE): len(list(folder.glob("*.py"))) for folder in folders}
    too_large = {str(folder): size for folder, size in sizes.items() if size > MOST_FILES}
    assert set(too_large) == {"cli"}  # one file for each command


def test_the_root_names_every_package_and_module() -> None:
    assert foveal.__doc__ is not None
    listed = set(re.findall(r"^    ([a-z_, ]+?)  ", foveal.__doc__, re.MULTILINE))
    named = {name for line in listed for name in line.split(", ")}
    there = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    there |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert named == there


def test_public_names_are_few() -> None:
    assert sum(map(len, PUBLIC_NAMES.values())) <= MOST_NAMES


@pytest.mark.parametrize("package", [package for package, names in PUBLIC_NAMES.items() if names])
def test_public_names_are_in_the_reference(package: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").glob("*.md")]
    assert any(f"<!-- exports: {package} -->" in page for page in pages)
