"""A model on its way to another machine: the files of its bundle, which are verified where they arrive."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...bundles._bundle import bundle_files


def packed(folder: Path) -> dict[str, bytes]:
    """The files of a bundle by their names."""
    return {path.name: path.read_bytes() for path in bundle_files(folder)}


@contextmanager
def unpacked(files: Mapping[str, bytes]) -> Iterator[Path]:
    """A folder with the files of a bundle, for as long as it takes to load it."""
    with tempfile.TemporaryDirectory(prefix="bundle") as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        yield Path(name)
