"""Text files that are replaced as a whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Open a file to write in place of another. A reader, and a run that goes on after a crash or on a full
    disk, finds the old text or the new one, and never a part.
    """
    temporary = path.with_name(f".{path.name}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)  # a full disk needs the room
        raise
    temporary.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Write a text in place of what a file has."""
    with replacing(path) as file:
        file.write(text)
