"""Penalties that make outputs of different lengths and coverage comparable.

    score(Y) = log p(Y) / ( (offset + |Y|) / (offset + 1) )^alpha
               + beta sum_s log min( sum_t weights[t, s], 1 )

Reference: Wu et al. 2016, eq. 14. |Y| counts the end symbol.

Axes: B items, K hypotheses, S positions in memory.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..specs import setting

# A position without attention would have an infinite penalty, and sparse attention does skip positions, so
# coverage is clamped at this minimum.
LEAST_COVERAGE = 0.01


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class LengthPenalty:
    """Divides the log-probability by a power of the length.

    `LengthPenalty(alpha=1, offset=0)` ranks by the mean log-probability of a token.

    Examples:
        >>> round(LengthPenalty(alpha=1.0).divisor(13), 6)
        3.0
    """

    alpha: float = setting(0.6, "0 ranks by probability, more favors longer outputs", at_least=0)
    offset: float = setting(5.0, "how slowly the penalty sets in", at_least=0)

    def divisor(self, length: int) -> float:
        """Compute the divisor for one output.

        Args:
            length: Number of tokens of the output, including the end symbol.

        Returns:
            The number by which the log-probability is divided.
        """
        return ((self.offset + length) / (self.offset + 1)) ** self.alpha


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class CoveragePenalty:
    """Penalizes positions of the memory with little or no attention.

    `mask` is True on real positions. Without it, padding counts as uncovered, which shifts all scores of an
    item equally and does not change the ranking.
    """

    beta: float = 0.2
    mask: Bool[Tensor, "B S"] | None = None

    def keep(self, items: Tensor) -> "CoveragePenalty":
        """Select these items.

        Args:
            items: Indices of the items to keep.

        Returns:
            The penalty of these items.
        """
        if self.mask is None:
            return self
        return CoveragePenalty(beta=self.beta, mask=self.mask[items])

    def score(self, coverage: Float[Tensor, "B K S"]) -> Float[Tensor, "B K"]:
        """Compute the penalty of each hypothesis.

        Args:
            coverage: Sum of the attention weights of all steps so far, for each position.

        Returns:
            Numbers to add to the scores, at most 0.
        """
        unread = coverage.clamp(LEAST_COVERAGE, 1.0).log()
        if self.mask is not None:
            unread = torch.where(self.mask.unsqueeze(1), unread, 0.0)
        return self.beta * unread.sum(-1)
