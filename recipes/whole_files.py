"""Files that recipes make of a corpus once, each written as a whole: two runs may begin at the same time."""

import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, lines: Iterable[str]) -> None:
    """Write a file of lines: a process that waits for it sees all of it, or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.writelines(lines)
    Path(file.name).replace(path)
