"""Readers: the expectation of what a selection reads, under the distribution.

    context = E[ read(values, z) ] = sum over places of weight * value

The weights are marginals, or simple functions of them; each reader says which.

Axes: *batch any leading shape, Q queries, S places (n words), V width of a value.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ..distributions import AbstractDistribution
from ..distributions._sparse import AbstractSparseDistribution

# What a reader takes: any distribution over selections, dense or sparse.
Selection = AbstractDistribution | AbstractSparseDistribution


class Read(NamedTuple):
    """What was read, and how much of each place."""

    context: Float[Tensor, "*batch Q V"]
    weights: Float[Tensor, "*batch Q S"]


def read_by(weights: Float[Tensor, "*batch Q S"], values: Float[Tensor, "*#batch S V"]) -> Read:
    """The weighted sum of the values, in their precision. The weights keep their own, which is
    float32 where the values are in half precision.
    """
    return Read(weights.to(values.dtype) @ values, weights)


class AbstractReader(nn.Module, ABC):
    """The context that a distribution over selections gives."""

    @abstractmethod
    def forward(self, distribution: Selection, values: Float[Tensor, "*batch S V"]) -> Read:
        """The expected value for every query, with the weights that gave it."""


@final
class ExpectedValue(AbstractReader):
    """The weights are the marginals: softmax, sigmoid and their kin."""

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = distribution.marginals()
        return read_by(weights, values)


@final
class ExpectedSelection(AbstractReader):
    """The weights are the marginals of one state of a chain (Kim et al. 2017, section 4.2).

    weight[s] = p(z_s = state)                        as it is, with total=None
    weight[s] = total * p(z_s = state) / sum_s p      scaled to a total: the paper's lambda, 2
    """

    def __init__(self, state: int = 1, total: float | None = None) -> None:
        super().__init__()
        self.state, self.total = state, total

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = to_total(distribution.marginals()[..., self.state], self.total)
        return read_by(weights, values)


def to_total(
    weights: Float[Tensor, "*batch Q S"], total: float | None
) -> Float[Tensor, "*batch Q S"]:
    """The weights of each query scaled to a sum, or as they are; 0 stays 0."""
    if total is None:
        return weights
    mass = weights.sum(-1, keepdim=True)
    return total * weights / torch.where(mass > 0, mass, 1.0)


@final
class ExpectedHeadReader(AbstractReader):
    """Each word reads its expected head: weight[d, h] = p(h is the head of d). A word that heads
    the sentence reads `root`, a learned vector (Kim et al. 2017, section 4.4, "soft parent").
    """

    def __init__(self, value_size: int) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.zeros(value_size))

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        return _read_heads(distribution.marginals()[..., 1:].transpose(-1, -2), values, self.root)


@final
class SelectedHeadReader(AbstractReader):
    """The same where each word has chosen its head by itself: `head_selection`."""

    def __init__(self, value_size: int) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.zeros(value_size))

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        return _read_heads(distribution.marginals(), values, self.root)


def _read_heads(
    heads: Float[Tensor, "*batch n m"],
    values: Float[Tensor, "*batch n V"],
    root: Float[Tensor, " V"],
) -> Read:
    """The expected head of each word; the first of the m = n + 1 heads is the root."""
    from_root, weights = heads[..., :1], heads[..., 1:]
    context, _ = read_by(weights, values)
    return Read(context + (from_root * root).to(context.dtype), weights)


@final
class ExpectedChildReader(AbstractReader):
    """Each word reads its expected children: weight[h, d] = p(h is the head of d)."""

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = distribution.marginals()[..., 1:, 1:]
        return read_by(weights, values)


@final
class AlignedValue(AbstractReader):
    """Queries are aligned to places in order: weight[q, s] = p(query q is given place s), from the
    lattice of `Alignment.one_to_many`.
    """

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = distribution.marginals()[..., 1:, 1:, 2].transpose(-1, -2)
        return read_by(weights, values)
