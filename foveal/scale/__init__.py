"""Scale: the same predictor over more than one file, and more than one process.

    shards -> answers beside each shard, what could not be read, and a record with counts and checksums

Bulk runs need `foveal[bulk]`; `foveal.scale.cluster` spreads them over a Ray cluster, and needs
`foveal[ray]`.
"""

from ..extras import require as _require

_require("bulk", "fsspec", "pyarrow", needed_by="A bulk run, a preparation or a sweep")


from ._bulk import Bulk as Bulk, Done as Done
from ._line_format import line_format as line_format
from ._preparing import (
    Corpus as Corpus,
    Preparation as Preparation,
    ShardExamples as ShardExamples,
    corpus_shards as corpus_shards,
)
from ._records import Record as Record
from ._space import (
    Dimension as Dimension,
    given_dimension as given_dimension,
    usual_dimensions as usual_dimensions,
)
from ._storage import Shard as Shard, find_shards as find_shards
from ._sweep import PLAN as PLAN, Sweep as Sweep
from ._trials import Trial as Trial
