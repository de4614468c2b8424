"""Any subset of n items, each selected independently: sigmoid attention.

    p(z) = prod_i sigmoid( scores[i] )^z_i (1 - sigmoid( scores[i] ))^(1 - z_i)
    log Z = sum_i log( 1 + exp( scores[i] ) )

Axes: *batch any leading shape, n items.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus
from typing_extensions import override

from ..batch_invariant import sigmoid
from ..inference import chain_best
from ..masking import forbid_padding
from ._checks import check_mask, check_scores, masked_batch_shape
from ._distribution import AbstractDistribution, expectation

# Above this threshold, log(1 + exp(x)) equals x in float64.
_THRESHOLD = 40.0


@final
@dataclass(frozen=True, eq=False)
class Subset(AbstractDistribution):
    """Independent selection of n items; a value is boolean `(..., n)`, True on selected items.

    The empty subset is always possible, with score 0.

    Args:
        scores: Score of each item; the score of a subset is the sum over its items.
        mask: True on real items; by default, all are real.

    Examples:
        >>> chosen = Subset(torch.tensor([1.0, -torch.inf]))
        >>> chosen.marginals()
        tensor([0.7311, 0.0000])
        >>> chosen.topk(2).values
        tensor([[ True, False],
                [False, False]])
    """

    _is_boolean: ClassVar[bool] = True

    scores: Float[Tensor, "*#batch n"]
    mask: Bool[Tensor, "*#batch n"] | None = None

    def __post_init__(self) -> None:
        check_scores("Subset", "scores", self.scores, "n")
        check_mask("Subset", self.mask, self.scores.shape[-1])

    @property
    @override
    def batch_shape(self) -> torch.Size:
        return masked_batch_shape("Subset", self.scores, self.mask)

    def _allowed(self) -> Float[Tensor, "*batch n"]:
        scores = self.scores.to(self._dtype()).expand(*self.batch_shape, -1)
        return forbid_padding(scores, self.mask)

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        return softplus(self._allowed(), threshold=_THRESHOLD).sum(-1)

    @override
    def marginals(self) -> Float[Tensor, "*batch n"]:
        return sigmoid(self._allowed())

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        # Independent selection is a chain of two states whose transitions are all 0.
        scores = self._allowed().reshape(-1, self.scores.shape[-1])
        unary = torch.stack([torch.zeros_like(scores), scores], -1)
        found = chain_best(unary, scores.new_zeros(1, 1, 2, 2), k=k)
        shape = (k, *self.batch_shape)
        values = (found.labels == 1).reshape(*shape, self.scores.shape[-1])
        return values, found.scores.reshape(shape)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        marginals = self.marginals().detach()
        uniform = marginals.new_empty(num_samples, *marginals.shape, dtype=torch.float64)
        possible = torch.ones(self.batch_shape, dtype=torch.bool, device=marginals.device)
        return uniform.uniform_(generator=generator) < marginals, possible

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return tuple(self.scores.shape[-1:])

    @override
    def _score(self, value: Bool[Tensor, "... n"]) -> Float[Tensor, "..."]:
        if self.mask is not None:
            value = value & self.mask
        return torch.where(value, self.scores.to(self._dtype()), 0.0).sum(-1)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), forbid_padding(other.scores, other.mask), 1)
