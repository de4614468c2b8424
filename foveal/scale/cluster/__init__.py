"""The same on a Ray cluster: this machine's cores, or whatever RAY_ADDRESS names. Needs `foveal[ray]`."""

from ...extras import require as _require

_require("ray", "ray", needed_by="A cluster")

from . import _environment as _environment  # before Ray is imported, which reads it
from ._joining import joined as joined
from ._pool import (
    answered_by_pool as answered_by_pool,
    counted_by_pool as counted_by_pool,
    written_by_pool as written_by_pool,
)
from ._serving import (
    Deployment as Deployment,
    Replicas as Replicas,
    ReplicasError as ReplicasError,
    serve_by_replicas as serve_by_replicas,
)
from ._sweeping import Ended as Ended, run_trials as run_trials
from ._training import WorkersError as WorkersError, train_by_workers as train_by_workers
