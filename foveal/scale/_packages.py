"""The packages of `foveal[bulk]`: whoever lacks one is told so, and what to do."""

from importlib.util import find_spec

from ..errors import MissingPackageError

for _name in ("fsspec", "pyarrow"):
    if find_spec(_name) is None:
        raise MissingPackageError(
            f"The commands bulk, prepare and sweep, and foveal.scale, need the package {_name}, which is not "
            f"installed. Run in the checkout: pip install '.[bulk]' (for sweep and --ray: '.[ray]')"
        )
