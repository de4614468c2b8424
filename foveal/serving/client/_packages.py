"""The package of `foveal[client]`: whoever lacks it is told so, and what to do."""

from importlib.util import find_spec

from ...errors import MissingPackageError

if find_spec("httpx2") is None:
    raise MissingPackageError(
        "The client needs the package httpx2, which is not installed. "
        "Run in the checkout: pip install '.[client]'"
    )
