"""Distributions over structures: values with one set of verbs.

Every one has `log_partition, log_prob, score, marginals, argmax, sample, topk, entropy,
cross_entropy, kl`, takes any leading batch shape, and masks that are True on real items.
"""

from ._categorical import Categorical as Categorical
from ._distribution import AbstractDistribution as AbstractDistribution, TopK as TopK
from ._linear_chain import LinearChain as LinearChain
from ._semi_markov import SemiMarkov as SemiMarkov
from ._subset import Subset as Subset
