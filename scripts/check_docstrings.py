"""Fail when a public docstring does not describe the arguments, the result or the errors.

    python scripts/check_docstrings.py                    all names of tests/public_names.json
    python scripts/check_docstrings.py foveal.attention   the names of some packages

pydoclint compares the sections of a docstring with the signature, but accepts a docstring without sections. This
check covers public names: functions, methods, and classes with a constructor. It skips overrides, whose base
method has the sections, and dataclasses, named tuples and exceptions, whose fields have comments.
"""

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from typing_extensions import is_protocol

ROOT = Path(__file__).resolve().parents[1]
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def raises(function: Callable[..., Any]) -> bool:
    """Return whether a function has a `raise` statement with an exception in its own body."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    waiting = list(ast.iter_child_nodes(definition))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            return True
        if not isinstance(node, NESTED):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def missing_sections(function: Callable[..., Any], docstring: str) -> list[str]:
    """Return the sections that the signature and the body call for, and the docstring lacks."""
    signature = inspect.signature(function)
    takes_arguments = bool(signature.parameters.keys() - {"self", "cls"})
    returns = signature.return_annotation not in (None, "None", inspect.Signature.empty)
    needed = {
        "Args": takes_arguments and "Args:" not in docstring,
        "Returns": returns and not ("Returns:" in docstring or "Yields:" in docstring),
        "Raises": "Raises:" not in docstring and raises(function),
    }
    return [section for section, lacks in needed.items() if lacks]


def methods(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods that a class defines and no base class has."""
    for name, member in vars(owner).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_override = any(name in vars(base) for base in owner.__mro__[1:])
        if inspect.isfunction(function) and not name.startswith("_") and not is_override:
            yield name, function


def has_constructor(owner: type) -> bool:
    """Return whether a class defines an `__init__` of which the docstring must describe the arguments."""
    has_fields = dataclasses.is_dataclass(owner) or issubclass(owner, tuple | BaseException)
    return "__init__" in vars(owner) and not has_fields and not is_protocol(owner)


def complaints(name: str, thing: object) -> Iterator[str]:
    """Yield a line for each docstring of a public name that lacks a section."""
    found = list[tuple[str, list[str]]]()
    if inspect.isfunction(thing):
        found.append((name, missing_sections(thing, inspect.getdoc(thing) or "")))
    elif inspect.isclass(thing):
        if has_constructor(thing):
            constructor = thing.__init__
            docstring = f"{inspect.getdoc(thing)}\n{constructor.__doc__}"
            found.append((name, missing_sections(constructor, docstring)))
        for method, function in methods(thing):
            sections = missing_sections(function, inspect.getdoc(function) or "")
            found.append((f"{name}.{method}", sections))
    for where, sections in found:
        if sections:
            yield f"{where}: the docstring lacks {', '.join(sections)}"


def main(packages: Sequence[str]) -> int:
    """Check the public names of these packages, or all; return 1 if a docstring lacks a section."""
    names: dict[str, list[str]] = json.loads(
        (ROOT / "tests/public_names.json").read_text(encoding="utf-8")
    )
    found, count = list[str](), 0
    for module, exports in names.items():
        if packages and not any(f"{module}.".startswith(f"{package}.") for package in packages):
            continue
        for export in exports:
            found += complaints(f"{module}.{export}", getattr(import_module(module), export))
            count += 1
    print("\n".join(found) if found else f"{count} public names, every docstring has its sections")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
