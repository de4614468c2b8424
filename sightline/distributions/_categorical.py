"""One choice out of n: the softmax over positions.

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
from ..shapes import join_batch_shapes
from ._checks import check_mask, check_rank, check_scores, require_labels, require_possible
from ._distribution import AbstractDistribution, TopK, expectation


@final
@dataclass(frozen=True, eq=False)
class Categorical(AbstractDistribution):
    """One of n positions; a value is its index `(...)`.

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
        shapes = {"scores": self.scores.shape[:-1]}
        if self.mask is not None:
            shapes["mask"] = self.mask.shape[:-1]
        return join_batch_shapes("Categorical", **shapes)

    def _allowed(self) -> tuple[Float[Tensor, "*batch n"], Bool[Tensor, "*batch 1"]]:
        """Scores with padding forbidden, and whether any choice is left. Rows without one are 0
        throughout, so that softmax and logsumexp are never differentiated at -inf alone.
        """
        scores = self.scores.to(self._dtype()).expand(*self.batch_shape, -1)
        scores = forbid_padding(scores, self.mask)
        possible = (scores > -torch.inf).any(-1, keepdim=True)
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
    def argmax(self) -> Int[Tensor, "*batch"]:
        scores, possible = self._allowed()
        require_possible("Categorical.argmax", possible.squeeze(-1))
        return scores.argmax(-1)

    @override
    def sample(
        self,
        sample_shape: tuple[int, ...] = (),
        *,
        generator: torch.Generator | None = None,
    ) -> Int[Tensor, "..."]:
        marginals = self._widen().marginals().detach()
        require_possible("Categorical.sample", marginals.sum(-1) > 0)
        noise = marginals.new_empty(*sample_shape, *marginals.shape)
        # argmax(p / e) with e exponential is a draw from p (a race of exponentials).
        return (marginals / noise.exponential_(generator=generator)).argmax(-1)

    @override
    def topk(self, k: int) -> TopK:
        check_rank("Categorical", k)
        scores, possible = self._allowed()
        log_probs = torch.where(possible, scores.log_softmax(-1), -torch.inf)
        missing = max(0, k - log_probs.shape[-1])
        log_probs, values = pad(log_probs, (0, missing), value=-torch.inf).topk(k)
        values = torch.where(log_probs == -torch.inf, -1, values)
        return TopK(values.movedim(-1, 0), log_probs.movedim(-1, 0))

    @override
    def score(self, value: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        require_labels("Categorical.score", value, None, self.scores.shape[-1])
        scores = forbid_padding(self.scores.to(self._dtype()), self.mask)
        shape = torch.broadcast_shapes(value.shape, self.batch_shape)
        index = value.expand(shape).unsqueeze(-1)
        return scores.expand(*shape, -1).gather(-1, index).squeeze(-1)

    @override
    def _expected_score(self, other: Any) -> Float[Tensor, "*batch"]:
        return expectation(self.marginals(), forbid_padding(other.scores, other.mask), 1)
