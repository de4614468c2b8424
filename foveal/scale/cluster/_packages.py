"""The package of `foveal[ray]`: whoever lacks it is told so, and what to do."""

import os
from importlib.util import find_spec

from ...errors import MissingPackageError

if find_spec("ray") is None:
    raise MissingPackageError(
        "A cluster needs the package ray, which is not installed. Run in the checkout: pip install '.[ray]'"
    )

# Read when ray is imported: nothing of what is done here is told to anybody.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# And a cluster that lasts is asked with a token; for one that has none, say RAY_AUTH_MODE=disabled.
if "RAY_ADDRESS" in os.environ:
    os.environ.setdefault("RAY_AUTH_MODE", "token")
