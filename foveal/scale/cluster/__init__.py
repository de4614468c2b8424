"""The same on a Ray cluster: this machine's cores, or whatever RAY_ADDRESS names. Needs `foveal[ray]`."""

from ...extras import require as _require

_require("ray", "ray", needed_by="A cluster")

from . import _environment as _environment  # before Ray is imported, which reads it
