"""Exactly k of n items.

    score(z) = sum_i scores[i] z_i  for |z| = k,       Z = e_k( exp(scores) )

e_k is the elementary symmetric polynomial of degree k; k = 1 is the softmax. Time and memory are
O(n k), also when training through the marginals.

Axes: *batch any leading shape, n items.
References: Chen & Liu 1997 (conditional Bernoulli); Kulesza & Taskar 2012, section 5 (k-DPP).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ..errors import ValueRangeError
from ..inference import k_subset_best, k_subset_log_partition, k_subset_marginals
from ..inference.k_subset._functions import k_subset_sample
from ..masking import forbid_padding
from ..shapes import flatten_batch, restore_batch
from ._checks import check_mask, check_scores, masked_batch_shape
from ._distribution import AbstractDistribution, expectation

# No tensor axis has this many items; larger numbers are mistakes.
_MOST = 2**31


@final
@dataclass(frozen=True, eq=False)
class KSubset(AbstractDistribution):
    """Subsets of exactly k of n items; a value is boolean `(..., n)`, True on selected items.

    No subset is possible if fewer than k items are real and finite; for k = 0 the only subset is empty.

    Args:
        scores: Score of each item.
        k: Number of items in a subset.
        mask: True on real items; by default, all are real.

    Examples:
        >>> chosen = KSubset(torch.tensor([2.0, 1.0, 0.0]), k=2)
        >>> chosen.marginals()       # 2 in total
        tensor([0.9100, 0.7553, 0.3348])
        >>> chosen.topk(2).values
        tensor([[ True,  True, False],
                [ True, False,  True]])
    """

    _is_boolean: ClassVar[bool] = True

    scores: Float[Tensor, "*#batch n"]
    k: int
    mask: Bool[Tensor, "*#batch n"] | None = None

    def __post_init__(self) -> None:
        check_scores("KSubset", "scores", self.scores, "n")
        check_mask("KSubset", self.mask, self.scores.shape[-1])
        if not isinstance(self.k, int) or isinstance(self.k, bool) or not 0 <= self.k < _MOST:
            raise ValueRangeError(
                f"KSubset: k, the number of items chosen, must be an integer of at least 0 and below "
                f"2^31, got {self.k!r}. Pass k=0 for the empty set, int(k) for a float."
            )

    @property
    @override
    def batch_shape(self) -> torch.Size:
        return masked_batch_shape("KSubset", self.scores, self.mask)

    def _flat(self) -> tuple[Tensor, int, Tensor | None]:
        """Flatten the arguments to one leading axis, as `inference` expects."""
        batch = self.batch_shape
        mask = None if self.mask is None else flatten_batch(self.mask, batch, 1)
        # All sizes above n are impossible, and n + 1 is the cheapest.
        k = min(self.k, self.scores.shape[-1] + 1)
        return flatten_batch(self.scores, batch, 1), k, mask

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return restore_batch(k_subset_log_partition(*self._flat()), self.batch_shape)

    @override
    def marginals(self) -> Float[Tensor, "*batch n"]:
        """Compute p(item is selected), 0 on padding; differentiable."""
        return restore_batch(k_subset_marginals(*self._flat()), self.batch_shape)

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        """Find the best subsets; here k is the number of subsets, not their size."""
        shape = (k, *self.batch_shape)
        found = k_subset_best(*self._flat(), num_ranks=k)
        return found.values.reshape(*shape, *self._value_shape()), found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        drawn = k_subset_sample(*self._flat(), num_samples=num_samples, generator=generator)
        values = drawn.values.reshape(num_samples, *self.batch_shape, *self._value_shape())
        return values, drawn.possible.reshape(self.batch_shape)

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return tuple(self.scores.shape[-1:])

    @override
    def _score(self, value: Bool[Tensor, "... n"]) -> Float[Tensor, "..."]:
        """Sum the scores of the items; -inf unless they are k real items."""
        scores = forbid_padding(self.scores.to(self._dtype()), self.mask)
        total = torch.where(value, scores, 0.0).sum(-1)
        return torch.where(value.sum(-1) == self.k, total, -torch.inf)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), forbid_padding(other.scores, other.mask), 1)
