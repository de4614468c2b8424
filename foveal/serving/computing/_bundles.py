"""A bundle of one version: the server's process and the one that computes must read the same."""

from pathlib import Path
from typing import Any, TypeAlias

from ...bundles import load_bundle
from ...bundles._bundle import bundle_files
from ...bundles._manifest import seal_of
from ...errors import BundleError, ValueRangeError
from ...specs._files import specs_in
from ...tasks import AbstractTask

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]


def load_version(
    folder: Path, version: str | None = None, specs: Path | None = None
) -> tuple[AbstractTask[Any], str]:
    """The model in a folder, and the version it is of; `BundleError` if it is torn, changed while it was
    being read, or another than it should be. `specs` is a Python file with the parts of the model that
    are not from foveal.
    """
    found = seal_of(folder)
    task = load_bundle(folder, also=specs_in(specs))
    if seal_of(folder) != found or (version is not None and found != version):
        raise BundleError(f"{folder}: changed while it was being read. Load it again.")
    if task.inputs.picture:  # a request must not name files of this machine
        raise ValueRangeError(
            f"serve: {folder} is {task.spec.kind}, which reads files of images, and the server takes "
            f"texts alone. Use foveal predict."
        )
    return task, found


def signature(folder: Path) -> Signature:
    """Tells whether the files of a bundle have changed, without reading them."""
    return tuple(map(_state, bundle_files(folder)))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
