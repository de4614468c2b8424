"""One choice out of n: softmax over positions.

    p(z = i) = exp( scores[i] ) / sum_j exp( scores[j] )

Axes: *batch any leading shape, n choices.
"""

from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad
from typing_extensions import override

from ..masking import forbid_padding
from ._checks import check_mask, check_scores, masked_batch_shape, require_labels
from ._distribution import AbstractDistribution, expectation


@final
@dataclass(frozen=True, eq=False)
class Categorical(AbstractDistribution):
    """One of n positions; a value is its index `(...)`.

    Args:
        scores: Score of each position.
        mask: True on real positions; by default, all are real.

    Examples:
        >>> choice = Categorical(torch.zeros(3), mask=torch.tensor([True, True, False]))
        >>> choice.marginals()
        tensor([0.5000, 0.5000, 0.0000])
        >>> choice.entropy()     # log 2
        tensor(0.6931)
    """

    scores: Float[Tensor, "*#batch n"]
    mask: Bool[Tensor, "*#batch n"] | None = None

    def __post_init__(self) -> None:
        check_scores("Categorical", "scores", self.scores, "n")
        check_mask("Categorical", self.mask, self.scores.shape[-1])

    @property
    @override
    def batch_shape(self) -> torch.Size:
        return masked_batch_shape("Categorical", self.scores, self.mask)

    def _allowed(self) -> tuple[Float[Tensor, "*batch n"], Bool[Tensor, "*batch 1"]]:
        """Mask padding with -inf, and return whether any choice is left.

        Rows without a choice are set to 0, because softmax and logsumexp have no gradient where every
        score is -inf.
        """
        scores = self.scores.to(self._dtype()).expand(*self.batch_shape, -1)
        scores = forbid_padding(scores, self.mask)
        possible = ~(scores == -torch.inf).all(-1, keepdim=True)
        return torch.where(possible, scores, 0.0), possible

    @override
    def log_partition(self) -> Float[Tensor, "*batch"]:
        scores, possible = self._allowed()
        return torch.where(possible, scores.logsumexp(-1, keepdim=True), -torch.inf).squeeze(-1)

    @override
    def marginals(self) -> Float[Tensor, "*batch n"]:
        scores, possible = self._allowed()
        return torch.where(possible, scores.softmax(-1), 0.0)

    @override
    def _best(self, k: int) -> tuple[Tensor, Tensor]:
        scores, possible = self._allowed()
        missing = max(0, k - scores.shape[-1])
        scores = pad(torch.where(possible, scores, -torch.inf), (0, missing), value=-torch.inf)
        found = scores.topk(k)
        values = found.indices.clamp(max=self.scores.shape[-1] - 1)
        return values.movedim(-1, 0), found.values.movedim(-1, 0)

    @override
    def _draw(self, num_samples: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        marginals = self._widen().marginals().detach()
        noise = marginals.new_empty(num_samples, *marginals.shape)
        # argmax(p / e) with exponential e is a sample from p (a race of exponentials).
        values = (marginals / noise.exponential_(generator=generator)).argmax(-1)
        return values, marginals.sum(-1) > 0

    @override
    def _value_shape(self) -> tuple[int, ...]:
        return ()

    @override
    def _require_structures(self, value: Int[Tensor, "..."]) -> None:
        require_labels("Categorical.score", value, None, self.scores.shape[-1])

    @override
    def _score(self, value: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        scores = forbid_padding(self.scores.to(self._dtype()), self.mask)
        shape = torch.broadcast_shapes(value.shape, self.batch_shape)
        index = value.expand(shape).unsqueeze(-1)
        return scores.expand(*shape, -1).gather(-1, index).squeeze(-1)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), forbid_padding(other.scores, other.mask), 1)
