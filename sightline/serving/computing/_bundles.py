"""A bundle of one version: the server's process and the one that computes must read the same."""

import json
from pathlib import Path
from typing import Any

from ...errors import BundleError
from ...sealing import MANIFEST
from ...tasks import AbstractTask, load_bundle


def load_version(folder: Path, version: str | None = None) -> tuple[AbstractTask[Any], str]:
    """The model in a folder, and the version it is of; `BundleError` if it is torn, changed while it was
    being read, or another than it should be.
    """
    found = _version(folder)
    task = load_bundle(folder)
    if _version(folder) != found or (version is not None and found != version):
        raise BundleError(f"{folder}: changed while it was being read. Load it again.")
    return task, found


def _version(folder: Path) -> str:
    """The seal of a bundle; what it seals is verified when it is loaded."""
    try:
        return str(json.loads((folder / MANIFEST).read_bytes())["seal"])[:12]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
