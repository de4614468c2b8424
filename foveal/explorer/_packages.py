"""The packages of `foveal[serve]`: whoever lacks one is told so, and what to do."""

from importlib.util import find_spec

from ..errors import MissingPackageError

for _name in ("fastapi", "uvicorn"):
    if find_spec(_name) is None:
        raise MissingPackageError(
            f"The explorer needs the package {_name}, which is not installed. "
            f"Run in the checkout: pip install '.[serve]'"
        )
