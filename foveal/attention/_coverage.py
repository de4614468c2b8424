"""Coverage: the attention that each position has received so far, as a loss and as a score.

    coverage[q, s] = sum of weights[q', s] over the queries q' < q

Axes: *batch any leading shape, Q queries, S positions.
References: Tu et al. 2016; See et al. 2017, eq. 10 to 13.
"""

from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._scorers import AbstractScorer, scores_of


def coverage(weights: Float[Tensor, "*batch Q S"]) -> Float[Tensor, "*batch Q S"]:
    """Sum the weights that earlier queries gave to each position.

    Args:
        weights: Attention weights, with the queries in their order.

    Returns:
        Coverage of each position before each query; 0 for the first query.

    Examples:
        >>> coverage(torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))
        tensor([[0.0000, 0.0000],
                [1.0000, 0.0000],
                [1.5000, 0.5000]])
    """
    return weights.cumsum(-2) - weights


def coverage_loss(
    weights: Float[Tensor, "*batch Q S"], mask: Bool[Tensor, "*batch Q"] | None = None
) -> Float[Tensor, "*batch"]:
    """Penalize repeated attention: the sum over queries and positions of min(weight, coverage).

    Args:
        weights: Attention weights, with the queries in their order.
        mask: True on real queries; by default, all are real.

    Returns:
        Loss of each batch item.
    """
    again = torch.minimum(weights, coverage(weights)).sum(-1)
    return (again if mask is None else torch.where(mask, again, 0.0)).sum(-1)


@final
class CoverageScorer(nn.Module):
    """Adds a learned multiple of the coverage to the scores of another scorer.

    It takes one query at a time, because the coverage of a step is known only after the earlier steps.

        score[s] = inner score[s] + w * coverage[s]

    Args:
        inner: Scorer whose potentials are one tensor of scores.
    """

    def __init__(self, inner: AbstractScorer) -> None:
        super().__init__()
        self.inner = inner
        self.weight = nn.Parameter(torch.zeros(()))

    def remember(self, values: Float[Tensor, "*batch S V"]) -> Any:
        """Return the keys of the inner scorer.

        Args:
            values: Values of the memory.

        Returns:
            Keys, in the form that the inner scorer takes.
        """
        return self.inner.remember(values)

    def forward(
        self, query: Float[Tensor, "*batch Q D"], keys: Any, covered: Float[Tensor, "*batch Q S"]
    ) -> tuple[Float[Tensor, "*batch Q S"]]:
        """Compute the scores, given the coverage.

        Args:
            query: Queries, usually one.
            keys: Keys, as `remember` returns them.
            covered: Attention that each position has received before each query.

        Returns:
            A tuple of one tensor, the scores.

        Raises:
            ShapeError: The inner scorer returns several tensors.
        """
        return (scores_of(self.inner, query, keys) + self.weight * covered,)
