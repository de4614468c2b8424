"""Scale: one predictor over many files and processes.

    shards -> for each shard its answers, its rejected lines, and a record with counts and checksums

Bulk runs require `foveal[bulk]`; `foveal.scale.cluster` distributes them over a Ray cluster, and requires
`foveal[ray]`.
"""

from ..extras import require as _require

_require("bulk", "fsspec", "pyarrow", needed_by="foveal bulk, prepare or sweep")

from ._bulk import Bulk as Bulk
