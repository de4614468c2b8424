"""A bundle of one version: the server's process and the one that computes must read the same."""

from pathlib import Path
from typing import Any

from ...errors import BundleError
from ...sealing import seal_of
from ...tasks import AbstractTask, load_bundle


def load_version(folder: Path, version: str | None = None) -> tuple[AbstractTask[Any], str]:
    """The model in a folder, and the version it is of; `BundleError` if it is torn, changed while it was
    being read, or another than it should be.
    """
    found = seal_of(folder)
    task = load_bundle(folder)
    if seal_of(folder) != found or (version is not None and found != version):
        raise BundleError(f"{folder}: changed while it was being read. Load it again.")
    return task, found
