"""Files that a script writes from data in the repository and a test compares: the pages of a code host need no build."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Contents = Mapping[Path, Callable[[], str]]  # every file that a script writes, and its content


def outdated(contents: Contents) -> list[Path]:
    """Return the files that differ from what the script writes now."""
    return [
        path
        for path, content in contents.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != content()
    ]


def write_or_check(contents: Contents, arguments: Iterable[str], *, script: str) -> int:
    """Write the outdated files, or with --check only name them, and return an exit code."""
    found = outdated(contents)
    if "--check" not in arguments:
        for path in found:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(contents[path](), encoding="utf-8")
        return 0
    for path in found:
        print(f"{path.relative_to(ROOT)} is outdated. Run python scripts/{script}.")
    return 1 if found else 0
