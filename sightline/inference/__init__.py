"""Pure functions on log-potentials: sums, marginals, tangents, best structures, samples.

One leading batch axis B; half precision is raised, sums are in float64, the result has the
dtype of the potentials (at least float32). `-inf` forbids: probability 0, gradient 0.
"""

from ._chain import (
    ChainBest as ChainBest,
    ChainMarginals as ChainMarginals,
    ChainSamples as ChainSamples,
    chain_best as chain_best,
    chain_log_partition as chain_log_partition,
    chain_marginals as chain_marginals,
    chain_sample as chain_sample,
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
