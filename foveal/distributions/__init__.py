"""Distributions over structures with a common set of methods.

Every distribution has `log_partition, log_prob, score, marginals, argmax, sample, topk, entropy,
cross_entropy, kl`. It accepts any leading batch shape, and masks that are True on real items.
Sparse distributions (`Entmax, Sparsemax, SparseChain`) have `smoothed_max` instead of `log_partition`,
and `gibbs()` for the methods they lack.
"""

from ._alignment import Alignment as Alignment
from ._categorical import Categorical as Categorical
from ._checks import without_checks as without_checks
from ._distribution import AbstractDistribution as AbstractDistribution, TopK as TopK
from ._entmax import Entmax as Entmax, Sparsemax as Sparsemax
from ._k_subset import KSubset as KSubset
from ._linear_chain import LinearChain as LinearChain
from ._projective_tree import ProjectiveTree as ProjectiveTree
from ._semi_markov import SemiMarkov as SemiMarkov
from ._span_tree import SpanTree as SpanTree
from ._spanning_tree import SpanningTree as SpanningTree
from ._sparse_chain import SparseChain as SparseChain
from ._subset import Subset as Subset
from .by_autograd._log_partition import LogPartitionDistribution as LogPartitionDistribution
from .by_autograd._pcfg import PCFG as PCFG
from .by_autograd._sibling_tree import SiblingTree as SiblingTree
