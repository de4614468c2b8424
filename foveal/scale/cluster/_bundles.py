"""Transfer of a model to another machine: the files of its bundle, verified on arrival."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...bundles._bundle import bundle_files
from ...training._outputs import samples_file


def packed(folder: Path) -> dict[str, bytes]:
    """Return the files of a bundle by name, and the samples of its run to test it on, if there are any."""
    samples = samples_file(folder)
    files = (*bundle_files(folder), *((samples,) if samples.is_file() else ()))
    return {path.name: path.read_bytes() for path in files}


@contextmanager
def unpacked(files: Mapping[str, bytes]) -> Iterator[Path]:
    """Write the files of a bundle to a temporary folder, to load it."""
    with tempfile.TemporaryDirectory(prefix="bundle") as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        yield Path(name)
