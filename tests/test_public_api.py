"""The public names are pinned: to change one, edit public_names.json and CHANGELOG.md."""

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
    module = import_module(package)
    names = sorted(
        name
        for name in dir(module)
        if not name.startswith("_") and not isinstance(getattr(module, name), ModuleType)
    )
    assert names == PUBLIC_NAMES[package]


def test_no_package_is_left_out() -> None:
    packages = {f"foveal.{found.name}" for found in iter_modules(foveal.__path__) if found.ispkg}
    assert packages - set(PUBLIC_NAMES) == {"foveal.cli"}  # a command, not a library


def test_the_root_lists_its_names() -> None:
    assert sorted(foveal.__all__) == sorted(["__version__", *PUBLIC_NAMES["foveal"]])
    for name in foveal.__all__:
        assert getattr(foveal, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'train'"):
        getattr(foveal, "train")  # noqa: B009 - a type checker refuses the attribute


def test_the_root_has_a_version() -> None:
    assert import_module("foveal").__version__ == "0.1.0"
