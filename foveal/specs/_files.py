"""User-defined specs, listed in a Python file as `SPECS = (MySpec,)`.

Reading the file executes it, like importing a module. Only the user can name such a file, with the options
`--recipe` and `--with-specs` of the command line. No bundle and no JSON can name a file to execute.
"""

import dataclasses
import functools
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import SpecError

_NAME = "SPECS"


def run_file(path: str | Path, option: str) -> ModuleType:
    """Run a Python file, once per process, and return it as a module. It may import files next to it, and
    packages next to its folder or in the current folder.

    Args:
        path: Python file to run.
        option: Option that named the file, for error messages.

    Returns:
        The module.

    Raises:
        SpecError: The file does not exist, or imports a package that is not installed.
    """
    path = Path(path).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise SpecError(
            f"{option}: the Python file {path} does not exist. Use a file that ends in .py."
        )
    folder = path.parent
    try:
        return _run(path)
    except ModuleNotFoundError as error:
        raise SpecError(
            f"{option}: the file imports {error.name}, which is neither installed nor in {folder} or "
            f"{folder.parent}. Install the package, or move the module there."
        ) from error


@functools.cache  # keyed by the file only: its classes are the same for every option that names it
def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = path.parent
    sys.path += [str(folder.parent), str(folder), str(Path.cwd())]
    # Classes refer to their module by name. A module of this name that is already imported stays.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def specs_of(module: ModuleType, option: str) -> tuple[type, ...]:
    """Return the classes that a module lists as `SPECS`; none if it has no such list."""
    found: Any = vars(module).get(_NAME, ())
    if not isinstance(found, list | tuple):
        raise SpecError(
            f"{option}: {_NAME} must be a tuple of classes, got {type(found).__name__}. "
            f"Write {_NAME} = (MySpec,)."
        )
    for one in found:
        is_spec = isinstance(one, type) and dataclasses.is_dataclass(one)
        if not is_spec or inspect.isabstract(one):
            missing = ", ".join(sorted(getattr(one, "__abstractmethods__", ())))
            why = f"it lacks {missing}" if missing else "it is not a frozen dataclass"
            raise SpecError(
                f"{option}: {_NAME} must contain spec classes, got {one!r}: {why}. Derive the class "
                f"from an abstract spec, such as AbstractScorerSpec, and decorate it with "
                f"@dataclass(frozen=True, kw_only=True, slots=True)."
            )
    return tuple(found)


def specs_in(path: str | Path | None, option: str = "--with-specs") -> tuple[type, ...]:
    """Run a Python file and return the specs that it lists; none without a file.

    Args:
        path: Python file to run; None for no file.
        option: Option that named the file, for error messages.

    Returns:
        The spec classes.

    Raises:
        SpecError: The file does not exist, or lists no specs.
    """
    if path is None:
        return ()
    found = specs_of(run_file(path, f"{option} {path}"), f"{option} {path}")
    if not found:
        raise SpecError(
            f"{option} {path}: the file has no {_NAME}. Write {_NAME} = (MySpec,) with the classes that the "
            f"model needs."
        )
    return found
