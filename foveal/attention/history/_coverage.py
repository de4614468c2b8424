"""Coverage: the attention that each position has received so far, as a loss and as a score.

    coverage[q, s] = sum of weights[q', s] over the queries q' < q

Axes: *batch any leading shape, Q queries, S positions.
References: Tu et al. 2016; See et al. 2017, eq. 10 to 13.
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from typing_extensions import override

from .._memory import Memory
from .._scorers import AbstractScorer
from ._history import AbstractHistoryScorer


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
class CoverageScorer(AbstractHistoryScorer):
    """Adds a learned multiple of the coverage to the scores of another scorer.

        score[q, s] = inner score[q, s] + w * coverage[q, s]

    The coverage of a step is known only after the earlier steps, so a decoder attends with one step at a time. Before
    each step it replaces the coverage in the keys of the memory: `keys._replace(history=...)`.

    Args:
        inner: Scorer whose potentials are one tensor of scores.

    Examples:
        >>> from foveal.attention import DotScorer
        >>> scorer = CoverageScorer(DotScorer())
        >>> with torch.no_grad():
        ...     scorer.weight.fill_(-2.0)
        Parameter containing:
        tensor(-2., requires_grad=True)
        >>> keys = scorer.remember(torch.eye(2))
        >>> scorer(torch.ones(1, 2), keys._replace(history=torch.tensor([[1.0, 0.0]])))[0].tolist()
        [[-1.0, 1.0]]
    """

    def __init__(self, inner: AbstractScorer) -> None:
        super().__init__(inner)
        self.weight = nn.Parameter(torch.zeros(()))

    @override
    def first(self, memory: Memory) -> Float[Tensor, "*batch S"]:
        return memory.values.new_zeros(memory.values.shape[:-1])

    @override
    def after(self, history: Tensor, weights: Tensor) -> Float[Tensor, "*batch S"]:
        return history + weights

    @override
    def combine(
        self, scores: Tensor, query: Tensor, history: Tensor | None
    ) -> tuple[Float[Tensor, "*batch Q S"]]:
        return (scores if history is None else scores + self.weight * history,)
