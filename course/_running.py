"""Run the blocks of a chapter as a notebook does: one module, and the last expression of a block is displayed."""

import ast
import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from ._chapter import Block, Chapter, Role


@runtime_checkable
class _Drawing(Protocol):
    """An object that notebooks display as SVG."""

    def _repr_svg_(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Output:
    """The text that a block printed or displayed, and its drawing."""

    text: str = ""
    svg: str = ""


def run(chapter: Chapter, *, reduced: bool, check_starts: bool = False) -> list[Output]:
    """Run a chapter with the solutions of its exercises.

    Args:
        chapter: The chapter.
        reduced: Whether to run with the reduced values.
        check_starts: Whether every check must also fail for the code that the reader begins with.

    Returns:
        An output for each block; those of starts are empty, because solutions replace them.

    Raises:
        AssertionError: A check fails for a solution, or holds for a start.
    """
    outputs = list[Output]()
    start: Block | None = None
    check: Block | None = None
    with _module(chapter.name) as names:
        for block in chapter.blocks:
            match block.role:
                case Role.EXERCISE:
                    start, output = block, Output()
                case Role.CHECK:
                    check, output = block, Output()
                case Role.SOLUTION:
                    assert start is not None, f"{chapter.name}: a solution without an exercise"
                    assert check is not None, f"{chapter.name}: a solution without a check"
                    if check_starts:
                        _fails(start, check, names, chapter.name)
                    _execute(block, names, chapter.name, reduced=reduced)
                    output = _execute(check, names, chapter.name, reduced=reduced)
                case _:
                    output = _execute(block, names, chapter.name, reduced=reduced)
            outputs.append(output)
    return outputs


def timed_run(chapter: Chapter) -> tuple[list[Output], float]:
    """Run a chapter at full size and return its outputs and the seconds it took."""
    begin = time.perf_counter()
    outputs = run(chapter, reduced=False)
    return outputs, time.perf_counter() - begin


def hash_of(block: Block) -> str:
    """Return a hash of the code of a block, to find outputs of other code."""
    return sha256(block.code.encode()).hexdigest()[:16]


@contextlib.contextmanager
def _module(name: str) -> Iterator[dict[str, Any]]:
    """Provide the names of a new module in an empty folder: classes find their module, and files go there."""
    module = ModuleType(f"chapter_{name}")
    sys.modules[module.__name__] = module
    before = Path.cwd()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                yield vars(module)
            finally:
                os.chdir(before)
    finally:
        del sys.modules[module.__name__]


def _execute(block: Block, names: dict[str, Any], name: str, *, reduced: bool) -> Output:
    tree = ast.parse(block.reduced if reduced else block.shown)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<{name}>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<{name}>", "eval"), names)
    if isinstance(value, _Drawing):
        return Output(printed.getvalue(), value._repr_svg_())
    if value is not None:
        printed.write(f"{value!r}\n")
    return Output(printed.getvalue())


def _fails(start: Block, check: Block, names: dict[str, Any], name: str) -> None:
    """Raise unless the check fails for the code that the reader begins with."""
    copy = dict(names)
    try:
        _execute(start, copy, name, reduced=True)
        _execute(check, copy, name, reduced=True)
    except Exception:
        return
    raise AssertionError(f"{name}: a check holds before the exercise is solved: {check.code}")
