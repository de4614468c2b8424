"""How the place that is read at one step depends on the place before: the prior of summed attention.

    free      p(a_t = j)                 = softmax over all places of score[t]       Wu et al. 2018
    forward   p(a_t = j | a_{t-1} = i)   = softmax over the places j >= i            Wu & Cotterell 2019

Both are normalized at every step, so that a decoder can write from left to right.

Axes: B items, T steps, S places.
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
    """A walk over the places of a memory, one place at each step. Scores are -inf where a place is
    shut; at least one is open.
    """

    remembers: bool  # whether a step depends on where the last one was

    @abstractmethod
    def predict(
        self, before: Float[Tensor, "*batch S"], scores: Float[Tensor, "*batch S"]
    ) -> Float[Tensor, "*batch S"]:
        """log p(a_t | y_<t) from log p(a_{t-1} | y_<t); without a gradient."""

    @abstractmethod
    def run(
        self,
        scores: Float[Tensor, "B T S"],
        emissions: Float[Tensor, "B T S"],
        before: Float[Tensor, "B S"],
        mask: Bool[Tensor, "B T"] | None,
    ) -> Walked:
        """All steps, given log p(y_t | a_t) of what was written."""

    @abstractmethod
    def posterior(
        self,
        scores: Float[Tensor, "*batch T S"],
        emissions: Float[Tensor, "*batch T S"],
        predicted: Float[Tensor, "*batch T S"],
        mask: Bool[Tensor, "*batch T"] | None,
    ) -> Categorical | LinearChain:
        """p(a | y), of all steps given all that was written."""

    def start(self, like: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch S"]:
        """log p(a_0): before the first place, from where all may be reached."""
        first = torch.full_like(like, -torch.inf)
        first[..., 0] = 0.0
        return first


@final
class IndependentPositions(AbstractTransitions):
    """Any place at any step, whatever came before."""

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
    """Never back: the same place again, or a later one."""

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
        """A chain over the steps whose states are the places. What came before its first real step
        is in the prediction of that step.
        """
        real = torch.ones(scores.shape[:-1], dtype=torch.bool, device=scores.device)
        real = real if mask is None else mask
        first = real & (real.cumsum(-1) == 1)
        unary = torch.where(first.unsqueeze(-1), predicted + emissions, emissions)
        return LinearChain(unary, transitions(scores[..., 1:, :]), mask)
