"""Readers: the expected value of a selection under the distribution.

    context = E[ read(values, z) ] = sum over positions of weight * value

The weights are marginals, or simple functions of marginals; each reader documents its weights.

Axes: *batch any leading shape, Q queries, S positions (n words), V width of a value.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ..distributions import AbstractDistribution
from ..distributions._sparse import AbstractSparseDistribution

# A reader takes any distribution over selections, dense or sparse.
Selection = AbstractDistribution | AbstractSparseDistribution


class Read(NamedTuple):
    """The context, and the weight of each position."""

    context: Float[Tensor, "*batch Q V"]
    weights: Float[Tensor, "*batch Q S"]


def read_by(weights: Float[Tensor, "*batch Q S"], values: Float[Tensor, "*#batch S V"]) -> Read:
    """Compute the weighted sum of the values, in the dtype of the values.

    The weights keep their dtype, which is float32 for values in half precision.
    """
    return Read(weights.to(values.dtype) @ values, weights)


class AbstractReader(nn.Module, ABC):
    """Computes the context from a distribution over selections."""

    @abstractmethod
    def forward(self, distribution: Selection, values: Float[Tensor, "*batch S V"]) -> Read:
        """Compute the expected value for every query, and its weights.

        Args:
            distribution: Distribution over selections, from the `distribute` slot of the attention.
            values: Values of the memory, with padding set to 0.

        Returns:
            The context and the weights.
        """


@final
class ExpectedValue(AbstractReader):
    """Uses the marginals as weights: softmax, sigmoid and similar distributions."""

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = distribution.marginals()
        return read_by(weights, values)


@final
class ExpectedSelection(AbstractReader):
    """Uses the marginals of one state of a chain as weights (Kim et al. 2017, section 4.2).

    weight[s] = p(z_s = state)                        with total=None
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
    """Scale the weights of each query to the sum `total`, if given; weights that are all 0 stay 0."""
    if total is None:
        return weights
    mass = weights.sum(-1, keepdim=True)
    return total * weights / torch.where(mass > 0, mass, 1.0)


@final
class ExpectedHeadReader(AbstractReader):
    """Reads the expected head of each word: weight[d, h] = p(h is the head of d).

    The root word of the sentence reads `root`, a learned vector (Kim et al. 2017, section 4.4, "soft parent").
    """

    def __init__(self, value_size: int) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.zeros(value_size))

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        return _read_heads(distribution.marginals()[..., 1:].transpose(-1, -2), values, self.root)


@final
class SelectedHeadReader(AbstractReader):
    """Reads the head that each word selects independently, see `head_selection`."""

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
    """Compute the expected head of each word; the first of the m = n + 1 heads is the root."""
    from_root, weights = heads[..., :1], heads[..., 1:]
    context, _ = read_by(weights, values)
    return Read(context + (from_root * root).to(context.dtype), weights)


@final
class ExpectedChildReader(AbstractReader):
    """Reads the expected children of each word: weight[h, d] = p(h is the head of d)."""

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = distribution.marginals()[..., 1:, 1:]
        return read_by(weights, values)


@final
class AlignedValue(AbstractReader):
    """Aligns queries to positions in order: weight[q, s] = p(query q is aligned to position s).

    The distribution is the lattice of `Alignment.one_to_many`.
    """

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = distribution.marginals()[..., 1:, 1:, 2].transpose(-1, -2)
        return read_by(weights, values)
