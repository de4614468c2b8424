"""The prior of latent attention: how the position of one step depends on the previous position.

    free      p(a_t = j)                 = softmax over all positions of score[t]    Wu et al. 2018
    forward   p(a_t = j | a_{t-1} = i)   = softmax over the positions j >= i         Wu & Cotterell 2019

Both are normalized at every step, so a decoder can generate from left to right.

Axes: B items, T steps, S positions.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from ....distributions import Categorical, LinearChain
from ._filter import Walked, forward_filter, forward_step, transitions


class AbstractTransitions(ABC):
    """A model of sequences of positions, one position for each step.

    Scores are -inf on masked positions; at least one position is not masked.
    """

    remembers: bool  # whether a step depends on the position of the previous step

    @abstractmethod
    def predict(
        self, before: Float[Tensor, "*batch S"], scores: Float[Tensor, "*batch S"]
    ) -> Float[Tensor, "*batch S"]:
        """Compute log p(a_t | y_<t) from log p(a_{t-1} | y_<t), without a gradient."""

    @abstractmethod
    def run(
        self,
        scores: Float[Tensor, "B T S"],
        emissions: Float[Tensor, "B T S"],
        before: Float[Tensor, "B S"],
        mask: Bool[Tensor, "B T"] | None,
    ) -> Walked:
        """Run all steps, given log p(y_t | a_t) of the tokens."""

    @abstractmethod
    def posterior(
        self,
        scores: Float[Tensor, "*batch T S"],
        emissions: Float[Tensor, "*batch T S"],
        predicted: Float[Tensor, "*batch T S"],
        mask: Bool[Tensor, "*batch T"] | None,
    ) -> Categorical | LinearChain:
        """Compute the posterior p(a | y) of all steps given all tokens."""

    def start(self, like: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch S"]:
        """Return log p(a_0): at the first position, from which all positions can be reached."""
        first = torch.full_like(like, -torch.inf)
        first[..., 0] = 0.0
        return first


@final
class IndependentPositions(AbstractTransitions):
    """Any position at any step, independent of the previous steps."""

    remembers = False

    @override
    def predict(self, before: Tensor, scores: Tensor) -> Tensor:
        return scores.log_softmax(-1)

    @override
    def run(self, scores: Tensor, emissions: Tensor, before: Tensor, mask: Tensor | None) -> Walked:
        predicted = scores.log_softmax(-1)
        log_prob = (predicted + emissions).logsumexp(-1)
        if mask is not None:
            log_prob = log_prob.masked_fill(~mask, 0.0)
        return Walked(predicted, log_prob, before)

    @override
    def posterior(
        self, scores: Tensor, emissions: Tensor, predicted: Tensor, mask: Tensor | None
    ) -> Categorical:
        allowed = None if mask is None else mask.unsqueeze(-1).expand_as(predicted)
        return Categorical(predicted + emissions, allowed)


@final
class MonotonicTransitions(AbstractTransitions):
    """Monotonic positions: each step stays at the same position or moves to a later one."""

    remembers = True

    @override
    def predict(self, before: Tensor, scores: Tensor) -> Tensor:
        return forward_step(before, scores)

    @override
    def run(self, scores: Tensor, emissions: Tensor, before: Tensor, mask: Tensor | None) -> Walked:
        return forward_filter(scores, emissions, before, mask)

    @override
    def posterior(
        self, scores: Tensor, emissions: Tensor, predicted: Tensor, mask: Tensor | None
    ) -> LinearChain:
        """Build a chain over the steps whose states are the positions.

        The prediction of the first real step accounts for the steps before it.
        """
        real = torch.ones(scores.shape[:-1], dtype=torch.bool, device=scores.device)
        real = real if mask is None else mask
        first = real & (real.cumsum(-1) == 1)
        unary = torch.where(first.unsqueeze(-1), predicted + emissions, emissions)
        return LinearChain(unary, transitions(scores[..., 1:, :]), mask)
