"""Scale: the same predictor over more than one file, and more than one process.

    shards -> answers beside each shard, what could not be read, and a record with counts and checksums

Bulk runs need `foveal[bulk]`; `foveal.scale.cluster` spreads them over a Ray cluster, and needs
`foveal[ray]`.
"""

from ..extras import require as _require

_require("bulk", "fsspec", "pyarrow", needed_by="A bulk run, a preparation or a sweep")

from ._bulk import Bulk as Bulk
