"""Pure functions on log-potentials: sums, marginals, tangents, best structures, samples.

One leading batch axis B; half precision is raised, sums are in float64, the result has the
dtype of the potentials (at least float32). `-inf` forbids: probability 0, gradient 0.
"""

from ._alignment import (
    AlignmentBest as AlignmentBest,
    AlignmentSamples as AlignmentSamples,
    alignment_best as alignment_best,
    alignment_log_partition as alignment_log_partition,
    alignment_marginals as alignment_marginals,
    alignment_sample as alignment_sample,
)
from ._chain import (
    ChainBest as ChainBest,
    ChainMarginals as ChainMarginals,
    ChainSamples as ChainSamples,
    chain_best as chain_best,
    chain_log_partition as chain_log_partition,
    chain_marginals as chain_marginals,
    chain_node_marginals as chain_node_marginals,
    chain_sample as chain_sample,
)
from ._entmax import entmax_marginals as entmax_marginals, entmax_maximum as entmax_maximum
from ._k_subset import (
    KSubsetBest as KSubsetBest,
    KSubsetSamples as KSubsetSamples,
    k_subset_best as k_subset_best,
    k_subset_log_partition as k_subset_log_partition,
    k_subset_marginals as k_subset_marginals,
    k_subset_sample as k_subset_sample,
)
from ._projective import (
    ProjectiveBest as ProjectiveBest,
    ProjectiveSamples as ProjectiveSamples,
    projective_best as projective_best,
    projective_log_partition as projective_log_partition,
    projective_marginals as projective_marginals,
    projective_sample as projective_sample,
)
from ._semi_markov import (
    SemiMarkovBest as SemiMarkovBest,
    SemiMarkovMarginals as SemiMarkovMarginals,
    SemiMarkovSamples as SemiMarkovSamples,
    semi_markov_best as semi_markov_best,
    semi_markov_log_partition as semi_markov_log_partition,
    semi_markov_marginals as semi_markov_marginals,
    semi_markov_sample as semi_markov_sample,
)
from ._span import (
    SpanBest as SpanBest,
    SpanSamples as SpanSamples,
    span_best as span_best,
    span_log_partition as span_log_partition,
    span_marginals as span_marginals,
    span_sample as span_sample,
)
from ._spanning import (
    SpanningBest as SpanningBest,
    SpanningSamples as SpanningSamples,
    spanning_best as spanning_best,
    spanning_log_partition as spanning_log_partition,
    spanning_marginals as spanning_marginals,
    spanning_sample as spanning_sample,
)
from ._sparse_chain import (
    sparse_chain_marginals as sparse_chain_marginals,
    sparse_chain_maximum as sparse_chain_maximum,
)
