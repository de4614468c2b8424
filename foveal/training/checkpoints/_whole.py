"""Atomic replacement of text files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Open a file that atomically replaces another one. After a crash or on a full disk, readers find the old text or
    the new text, never a part.
    """
    temporary = path.with_name(f".{path.name}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)  # a full disk needs the space
        raise
    temporary.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Replace the content of a file atomically."""
    with replacing(path) as file:
        file.write(text)
