"""The package of `sightline[client]`: whoever lacks it is told so, and what to do."""

from importlib.util import find_spec

from ...errors import MissingPackageError

if find_spec("httpx2") is None:
    raise MissingPackageError(
        "The client needs the package httpx2, which is not installed. "
        "Run: pip install 'sightline[client]'"
    )
