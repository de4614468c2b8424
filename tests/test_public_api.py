"""The public names, written down: to change one is to change public_names.json and CHANGELOG.md."""

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import foveal

PUBLIC_NAMES = json.loads(Path(__file__).with_name("public_names.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("package", PUBLIC_NAMES)
def test_the_public_names_are_these(package: str) -> None:
    names = sorted(
        name
        for name, member in vars(import_module(package)).items()
        if not name.startswith("_") and not isinstance(member, ModuleType)
    )
    assert names == PUBLIC_NAMES[package]


def test_no_package_is_left_out() -> None:
    packages = {f"foveal.{found.name}" for found in iter_modules(foveal.__path__) if found.ispkg}
    assert packages - set(PUBLIC_NAMES) == {"foveal.cli"}  # a command, not a library


def test_the_root_has_a_version() -> None:
    assert import_module("foveal").__version__ == "0.1.0"
