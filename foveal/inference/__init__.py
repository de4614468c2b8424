"""Pure functions on log-potentials: sums, marginals, tangents, best structures, samples.

All functions take one leading batch axis B. They convert half precision to float32 and sum in
float64; the result has the dtype of the potentials (at least float32). A score of `-inf` forbids
a choice: its probability and its gradient are 0.
"""

from ._entmax import entmax_marginals as entmax_marginals
from .alignment._ctc import (
    ctc_log_partition as ctc_log_partition,
    ctc_marginals as ctc_marginals,
)
from .alignment._functions import (
    alignment_best as alignment_best,
    alignment_log_partition as alignment_log_partition,
    alignment_marginals as alignment_marginals,
)
from .chain._functions import (
    chain_best as chain_best,
    chain_log_partition as chain_log_partition,
    chain_marginals as chain_marginals,
)
from .chain._sparse import sparse_chain_marginals as sparse_chain_marginals
from .k_subset._functions import (
    k_subset_best as k_subset_best,
    k_subset_log_partition as k_subset_log_partition,
    k_subset_marginals as k_subset_marginals,
)
from .projective._functions import (
    projective_best as projective_best,
    projective_log_partition as projective_log_partition,
    projective_marginals as projective_marginals,
)
from .semi_markov._functions import (
    semi_markov_best as semi_markov_best,
    semi_markov_log_partition as semi_markov_log_partition,
    semi_markov_marginals as semi_markov_marginals,
)
from .span._functions import (
    span_best as span_best,
    span_log_partition as span_log_partition,
    span_marginals as span_marginals,
)
from .spanning._functions import (
    spanning_best as spanning_best,
    spanning_log_partition as spanning_log_partition,
    spanning_marginals as spanning_marginals,
)
