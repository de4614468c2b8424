"""The layout of the package: small folders, a root that names every package, and a reference for every
public name.
"""

import ast
import json
import re
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

import pytest

import foveal

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "foveal"
MOST_FILES, MOST_NAMES = 20, 520
PUBLIC_NAMES: dict[str, list[str]] = json.loads(
    (ROOT / "tests/public_names.json").read_text(encoding="utf-8")
)
# All names of a package, or a group of them.
EXPORTS = re.compile(r"^<!-- exports: ([a-z_.]+)(?:;([\w,\s]+))? -->$", re.MULTILINE)

# This task uses public names only, which shows that a user-defined task can do the same.
OPEN_TASK = (
    "foveal/models/_parser.py",
    "foveal/tasks/_parse_batch.py",
    "foveal/tasks/_parse_steps.py",
    "foveal/tasks/_parsing.py",
    "foveal/tasks/_tree_check.py",
    "recipes/parsing.py",
)


def test_no_folder_has_too_many_files() -> None:
    folders = [path.parent for path in PACKAGE.rglob("__init__.py")]
    sizes = {folder.relative_to(PACKAGE): len(list(folder.glob("*.py"))) for folder in folders}
    too_large = {str(folder): size for folder, size in sizes.items() if size > MOST_FILES}
    assert set(too_large) == {"cli"}  # one file per command


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
    groups = [group for page in pages for name, group in EXPORTS.findall(page) if name == package]
    assert groups
    shown = [name.strip() for group in groups for name in group.split(",") if group]
    assert sorted(shown or PUBLIC_NAMES[package]) == sorted(PUBLIC_NAMES[package])


@pytest.mark.parametrize("file", OPEN_TASK)
def test_the_parsing_task_uses_public_names_only(file: str) -> None:
    imported = list(imports_of_foveal(file, (ROOT / file).read_text(encoding="utf-8")))
    assert imported or file.endswith("_batch.py")  # it needs torch only
    assert [name for name in imported if not is_public(name)] == []


def test_a_private_name_is_told_from_a_public_one() -> None:
    def imported(line: str) -> list[str]:
        return list(imports_of_foveal("foveal/tasks/_parsing.py", line))

    assert imported("from .base._size_classes import batched") == ["foveal.tasks.batched"]
    assert not is_public("foveal.tasks.batched")
    assert imported("from .base._size_classes import size_class") == ["foveal.tasks.size_class"]
    assert is_public("foveal.tasks.size_class")
    assert imported("from ..data._example import Example") == ["foveal.data._example.Example"]
    assert not is_public("foveal.data._example.Example")
    assert not is_public("foveal.masking._size")
    assert imported("import torch, foveal.data._lines") == ["foveal.data._lines"]
    assert not is_public("foveal.data._lines")
    assert imported("from ._parse_batch import ParseBatch") == []


def imports_of_foveal(file: str, source: str) -> Iterator[str]:
    """Yield the names that a file of the task imports from foveal, except from the task's other files.

    A name of the file's package is listed as that package exports it: files of one package cannot import
    from the package, which imports them.
    """
    package = ".".join(Path(file).parent.parts)
    own = {one.removesuffix(".py").replace("/", ".") for one in OPEN_TASK}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.split(".")[0] == "foveal")
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            if module.split(".")[0] == "foveal" and module not in own:
                inside = module.startswith(f"{package}.")
                yield from (f"{package if inside else module}.{one.name}" for one in node.names)


def is_public(name: str) -> bool:
    """Return whether a package exports a name, or a module next to the packages contains it."""
    module, _, last = name.rpartition(".")
    if module in PUBLIC_NAMES:
        return last in PUBLIC_NAMES[module]
    is_file = (ROOT / f"{module.replace('.', '/')}.py").is_file()
    return is_file and not any(part.startswith("_") for part in name.split("."))
