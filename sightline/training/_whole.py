"""Text files that are replaced as a whole."""

import os
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader, and a run that goes on after a crash or on a full disk, finds the old
    text or the new one, and never a part.
    """
    temporary = path.with_name(f".{path.name}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(path)
