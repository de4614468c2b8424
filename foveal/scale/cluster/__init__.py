"""Bulk runs, training, sweeps and serving on a Ray cluster: the local cores, or the cluster at RAY_ADDRESS.

Requires `foveal[ray]`.
"""

from ...extras import require as _require

_require("ray", "ray", needed_by="A cluster")

from . import _environment as _environment  # before Ray is imported, which reads it
