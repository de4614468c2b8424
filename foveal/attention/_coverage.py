"""Coverage: what has been read already, as a loss and as a score.

    coverage[q, s] = sum of weights[q', s] over the queries q' < q

Axes: *batch any leading shape, Q queries, S places.
References: Tu et al. 2016; See et al. 2017, eq. 10 to 13.
"""

from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._scorers import AbstractScorer, scores_of


def coverage(weights: Float[Tensor, "*batch Q S"]) -> Float[Tensor, "*batch Q S"]:
    """How much of each place the queries before this one have read.

    >>> coverage(torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))
    tensor([[0.0000, 0.0000],
            [1.0000, 0.0000],
            [1.5000, 0.5000]])
    """
    return weights.cumsum(-2) - weights


def coverage_loss(
    weights: Float[Tensor, "*batch Q S"], mask: Bool[Tensor, "*batch Q"] | None = None
) -> Float[Tensor, "*batch"]:
    """sum over queries and places of min(weight, coverage): the price of reading again."""
    again = torch.minimum(weights, coverage(weights)).sum(-1)
    return (again if mask is None else torch.where(mask, again, 0.0)).sum(-1)


@final
class CoverageScorer(nn.Module):
    """Adds a learned multiple of the coverage to a scorer's scores, for one query at a time (the
    coverage of a step is known only after the steps before it).

        score[s] = inner score[s] + w * coverage[s]
    """

    def __init__(self, inner: AbstractScorer) -> None:
        super().__init__()
        self.inner = inner
        self.weight = nn.Parameter(torch.zeros(()))

    def remember(self, values: Float[Tensor, "*batch S V"]) -> Any:
        """The keys of the inner scorer."""
        return self.inner.remember(values)

    def forward(
        self, query: Float[Tensor, "*batch Q D"], keys: Any, covered: Float[Tensor, "*batch Q S"]
    ) -> tuple[Float[Tensor, "*batch Q S"]]:
        """Scores that know what has been read."""
        return (scores_of(self.inner, query, keys) + self.weight * covered,)
