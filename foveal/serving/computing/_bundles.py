"""A bundle of one version: the server process and the computing process must read the same files."""

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
    folder: Path, version: str | None = None, specs: Path | None = None, device: str = "cpu"
) -> tuple[AbstractTask[Any], str]:
    """Load the model in a folder.

    Args:
        folder: The folder of the bundle.
        version: The required version; None accepts any.
        specs: A Python file with the parts of the model that are not from foveal.
        device: The device of the model.

    Returns:
        The task and its version.

    Raises:
        BundleError: The bundle is incomplete, changed during reading, or has another version.
        ValueRangeError: The model reads images.
    """
    found = seal_of(folder)
    task = load_bundle(folder, also=specs_in(specs), device=device)
    if seal_of(folder) != found or (version is not None and found != version):
        raise BundleError(
            f"{folder}: the files changed while they were read. Load the model again."
        )
    if task.inputs.picture:  # a request must not name files of this machine
        raise ValueRangeError(
            f"serve: {folder} is a model for {task.spec.kind}, which reads files; the server "
            f"accepts only texts. Use foveal predict."
        )
    return task, found


def signature(folder: Path) -> Signature:
    """Return a signature that changes with the files of a bundle, without reading them."""
    return tuple(map(_state, bundle_files(folder)))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
