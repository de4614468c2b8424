"""By what finished outputs of different lengths and coverage are compared.

    score(Y) = log p(Y) / ( (offset + |Y|) / (offset + 1) )^alpha
               + beta sum_s log min( sum_t weights[t, s], 1 )

Reference: Wu et al. 2016, eq. 14. |Y| counts the end symbol.

Axes: B items, K hypotheses, S places in memory.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..specs import setting

# A place that was not read at all would cost infinitely much, and sparse attention does leave places
# out: less than a hundredth of a reading costs as much as a hundredth.
LEAST_COVERAGE = 0.01


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LengthPenalty:
    """What the log-probability is divided by. `LengthPenalty(alpha=1, offset=0)` ranks by the mean
    log-probability of a token.

    >>> round(LengthPenalty(alpha=1.0).divisor(13), 6)
    3.0
    """

    alpha: float = setting(0.6, "0 ranks by probability, more favors longer outputs", at_least=0)
    offset: float = setting(5.0, "how slowly the penalty sets in", at_least=0)

    def divisor(self, length: int) -> float:
        """For one output of this length."""
        return ((self.offset + length) / (self.offset + 1)) ** self.alpha


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CoveragePenalty:
    """What is lost by leaving places of the memory unread, or half read.

    `mask` is True on real places. Without it padding counts as unread, which changes all scores of
    an item by one amount and no ranking.
    """

    beta: float = 0.2
    mask: Bool[Tensor, "B S"] | None = None

    def keep(self, items: Tensor) -> "CoveragePenalty":
        """For these items only."""
        if self.mask is None:
            return self
        return CoveragePenalty(beta=self.beta, mask=self.mask[items])

    def score(self, coverage: Float[Tensor, "B K S"]) -> Float[Tensor, "B K"]:
        """At most 0; `coverage` is the sum of the weights of all steps so far."""
        unread = coverage.clamp(LEAST_COVERAGE, 1.0).log()
        if self.mask is not None:
            unread = torch.where(self.mask.unsqueeze(1), unread, 0.0)
        return self.beta * unread.sum(-1)
