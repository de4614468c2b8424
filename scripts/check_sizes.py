"""Fail when a Python file or a function has grown too long to read in one go.

A docstring does not count towards the length of its function: equations take room.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end of the body, without the docstring."""
    assert node.end_lineno is not None
    total = node.end_lineno - node.lineno + 1
    if ast.get_docstring(node) is not None:
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        total -= docstring.end_lineno - docstring.lineno + 1
    return total


def complaints(path: Path) -> Iterator[str]:
    """One line of text for each thing in the file that is too long."""
    source = path.read_text(encoding="utf-8")
    num_lines = len(source.splitlines())
    if num_lines > MAX_FILE_LINES:
        yield f"{path}: {num_lines} lines, at most {MAX_FILE_LINES}. Split it by idea."
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = function_lines(node)
            if size > MAX_FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name} has {size} lines, "
                    f"at most {MAX_FUNCTION_LINES}. Give a part of it a name."
                )


def main(roots: list[str]) -> int:
    """Check every Python file below the roots; 1 if anything is too long."""
    paths = sorted(path for root in roots for path in Path(root).rglob("*.py"))
    found = [line for path in paths for line in complaints(path)]
    print("\n".join(found) if found else f"{len(paths)} files, none too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
