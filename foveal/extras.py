"""Optional packages: check that they are installed, and raise one clear error if they are not."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .errors import MissingPackageError


def require(extra: str, *packages: str, needed_by: str) -> None:
    """Check that all packages of an extra are installed.

    Args:
        extra: Name of the extra in `pyproject.toml`, for example `serve`.
        *packages: Names to import, for example `fastapi`.
        needed_by: Subject of the error's sentence, for example `The server`.

    Raises:
        MissingPackageError: A package is not installed.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingPackageError(
                f"{needed_by} needs the package {package}, which is not installed. "
                f"Run in the checkout: pip install '.[{extra}]'"
            )


def required(extra: str, package: str, *, needed_by: str) -> Any:
    """Import and return an optional package, for code that uses it only when it is called."""
    require(extra, package.partition(".")[0], needed_by=needed_by)
    return import_module(package)
