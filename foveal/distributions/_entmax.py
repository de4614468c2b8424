"""One choice out of n, where most choices have probability exactly 0.

    p = argmax over the simplex of  <p, scores> + H_alpha(p),     H_alpha(p) = sum_i ( p_i - p_i^alpha ) / ( alpha (alpha - 1) )

Sparsemax is alpha = 2: the Euclidean projection of the scores onto the simplex. Softmax is the limit
alpha -> 1. Higher values of alpha leave fewer choices.

Axes: *batch any leading shape, n choices.
References: Martins & Astudillo 2016 (sparsemax); Peters et al. 2019 (entmax).
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ..inference import entmax_marginals
from ..inference._entmax import entmax_maximum
from ..shapes import flatten_batch, restore_batch
from ._categorical import Categorical
from ._checks import check_mask, check_scores, masked_batch_shape
from ._sparse import AbstractSparseDistribution, check_alpha, log_or_forbid


@dataclass(frozen=True, eq=False)
class _AbstractEntmax(AbstractSparseDistribution):
    """One of n positions; a value is its index `(...)`."""

    scores: Float[Tensor, "*#batch n"]
    mask: Bool[Tensor, "*#batch n"] | None = None

    @abstractmethod
    def _order(self) -> float:
        """Return alpha."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_scores(owner, "scores", self.scores, "n")
        check_mask(owner, self.mask, self.scores.shape[-1])
        check_alpha(owner, self._order())

    @property
    @override
    def batch_shape(self) -> torch.Size:
        return masked_batch_shape(type(self).__name__, self.scores, self.mask)

    def _flat(self) -> tuple[Tensor, Tensor | None]:
        """Flatten scores and mask to one leading axis, as `inference` expects."""
        batch = self.batch_shape
        mask = None if self.mask is None else flatten_batch(self.mask, batch, 1)
        return flatten_batch(self.scores, batch, 1), mask

    @override
    def smoothed_max(self) -> Float[Tensor, "*batch"]:
        """Compute max over p of <p, scores> + H_alpha(p)."""
        return restore_batch(entmax_maximum(*self._flat(), alpha=self._order()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch n"]:
        return restore_batch(entmax_marginals(*self._flat(), alpha=self._order()), self.batch_shape)

    @override
    def gibbs(self) -> Categorical:
        return Categorical(log_or_forbid(self.marginals()), self.mask)


@final
@dataclass(frozen=True, eq=False)
class Sparsemax(_AbstractEntmax):
    """One of n positions, most with probability 0: the Euclidean projection onto the simplex.

    Args:
        scores: Score of each position.
        mask: True on real positions; by default, all are real.

    Examples:
        >>> choice = Sparsemax(torch.tensor([1.0, 0.6, 0.1]))
        >>> choice.marginals()
        tensor([0.7000, 0.3000, 0.0000])
        >>> choice.smoothed_max()
        tensor(1.0900)
        >>> choice.log_prob(torch.tensor(2))
        tensor(-inf)
    """

    @override
    def _order(self) -> float:
        return 2.0


@final
@dataclass(frozen=True, eq=False)
class Entmax(_AbstractEntmax):
    """One of n positions, many with probability 0; between softmax (alpha 1) and sparsemax (2).

    Args:
        scores: Score of each position.
        mask: True on real positions; by default, all are real.
        alpha: Order of the Tsallis entropy, greater than 1; a higher order is sparser.

    Examples:
        >>> Entmax(torch.tensor([1.0, 0.6, 0.1, -2.0])).marginals()
        tensor([0.5835, 0.3180, 0.0985, 0.0000])
    """

    alpha: float = field(default=1.5, kw_only=True)

    @override
    def _order(self) -> float:
        return self.alpha
