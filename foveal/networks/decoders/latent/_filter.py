"""Forward filter of a monotonic alignment: the position of a decoder, given its tokens so far.

    p(a_t = j | a_{t-1} = i) = exp( score[t, j] ) / sum over k >= i of exp( score[t, k] ),   j >= i

    predicted[t, j] = p(a_t = j | y_<t)  = sum over i <= j of filtered[t-1, i] p(a_t = j | a_{t-1} = i)
    p(y_t | y_<t)                        = sum over j of predicted[t, j] p(y_t | a_t = j)
    filtered[t, j]  = p(a_t = j | y_<=t) = predicted[t, j] p(y_t | a_t = j) / p(y_t | y_<t)

A transition probability is a score of its target divided by a sum that depends on its source, so a step
is a cumulative sum over the positions: O(S), whereas a chain with a transition matrix takes O(S^2). All
values are logarithms, and -inf, a masked position, has gradient exactly 0. The backward pass visits the
steps in reverse, with the conditional probabilities p(a_{t-1} | a_t, y_<t).

Axes: B items, T steps, S positions.
References: Wu & Cotterell 2019, section 4 (the model); Rabiner 1989, section III (the recursion).
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....errors import DerivativeError


class Walked(NamedTuple):
    """The results of the filter at each step, as logarithms.

    `log_prob` is 0 on padding; `after` is p(position | all tokens).
    """

    predicted: Float[Tensor, "B T S"]
    log_prob: Float[Tensor, "B T"]
    after: Float[Tensor, "B S"]


def forward_filter(
    scores: Float[Tensor, "B T S"],
    emissions: Float[Tensor, "B T S"],
    before: Float[Tensor, "B S"],
    mask: Bool[Tensor, "B T"] | None = None,
) -> Walked:
    """Filter all steps of a monotonic alignment, after `before`, log p(a_0); masked steps are skipped.

    Args:
        scores: Scores of the positions at every step, -inf on masked positions.
        emissions: Log p(y_t | a_t) of the token of each step.
        before: Log-probabilities of the position before the first step.
        mask: True on real steps.

    Returns:
        The predicted positions and the log-probability of the token of each step, and the final position.

    Examples:
        >>> start, say = torch.tensor([[0.0, -torch.inf]]), torch.zeros(1, 2, 2)
        >>> forward_filter(torch.zeros(1, 2, 2), say, start).predicted.exp()     # once there, stay there
        tensor([[[0.5000, 0.5000],
                 [0.2500, 0.7500]]])
    """
    return Walked(*_Filter.apply(scores, emissions, before, mask))


def forward_step(
    before: Float[Tensor, "*batch S"], scores: Float[Tensor, "*batch S"]
) -> Float[Tensor, "*batch S"]:
    """Compute log p(a_t | y_<t) from log p(a_{t-1} | y_<t), without a gradient."""
    return scores + (before - _log_norms(scores)).logcumsumexp(-1)


def transitions(scores: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch S S"]:
    """Compute log p(a_t = j | a_{t-1} = i) as [i, j]; -inf for backward transitions.

    Args:
        scores: Scores of the positions, -inf on masked positions.

    Returns:
        Log-probabilities with a row for each previous position; a row is all -inf if it allows no position.

    Examples:
        >>> transitions(torch.zeros(2)).exp()
        tensor([[0.5000, 0.5000],
                [0.0000, 1.0000]])
    """
    pairs = scores.unsqueeze(-2).expand(*scores.shape, scores.shape[-1])
    back = torch.ones(pairs.shape[-2:], dtype=torch.bool, device=scores.device).tril(-1)
    pairs = pairs.masked_fill(back, -torch.inf)
    possible = (pairs > -torch.inf).any(-1, keepdim=True)
    norms = torch.where(possible, pairs, 0.0).logsumexp(-1, keepdim=True)
    return torch.where(possible, pairs - norms, -torch.inf)


def _log_norms(scores: Tensor) -> Tensor:
    """Compute log sum over k >= i of exp(score[k]); inf if all positions from i are masked.

    An infinite norm gives transitions from i probability 0.
    """
    norms = scores.flip(-1).logcumsumexp(-1).flip(-1)
    return norms.masked_fill(norms == -torch.inf, torch.inf)


class _Filter(torch.autograd.Function):
    """(scores, emissions, before, mask) -> (predicted, log_prob, after)."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, emissions: Tensor, before: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        norms, said = _log_norms(scores), scores + emissions
        real = _real_items(mask, scores.shape[1])
        leaving, arrived, filtered, log_prob = [], [], [], []
        last, least = before, torch.finfo(scores.dtype).min
        for step, norm, items in zip(said.unbind(1), norms.unbind(1), real, strict=True):
            left = last - norm
            here = left.logcumsumexp(-1)
            joint = here + step
            total = joint.logsumexp(-1, keepdim=True)
            now = joint - total.clamp(min=least)  # if nothing is possible, all stay -inf
            last = now if items is None else torch.where(items, now, last)
            leaving.append(left)
            arrived.append(here)
            filtered.append(now)
            log_prob.append(total)
        kept = [torch.stack(parts, 1) for parts in (leaving, arrived, filtered)]
        ctx.save_for_backward(scores, norms, *kept, mask)
        found = torch.cat(log_prob, 1)
        if mask is not None:
            found = found.masked_fill(~mask, 0.0)
        return scores + kept[1], found, last

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise DerivativeError(
                "forward_filter: one derivative can be taken, got a request for one more. "
                "Take it without create_graph=True, or ask the posterior, a LinearChain."
            )
        scores, norms, leaving, arrived, filtered, mask = ctx.saved_tensors
        of_predicted, of_log_prob, of_last = grads
        real = None if mask is None else mask.to(scores.dtype).unsqueeze(-1)
        if real is not None:
            of_predicted, of_log_prob = of_predicted * real, of_log_prob * real.squeeze(-1)
        # p(a_{t-1} = i | a_t = j, y_<t) and p(a_t = j | a_{t-1} = i): 0 for i > j.
        arrived = arrived.masked_fill(arrived == -torch.inf, torch.inf)
        came = (leaving.unsqueeze(-1) - arrived.unsqueeze(-2)).exp_().triu_()
        goes = (scores.unsqueeze(-2) - norms.unsqueeze(-1)).exp_().triu_()
        posterior, given = filtered.exp().unbind(1), of_log_prob.unsqueeze(-1).unbind(1)
        of_joints, of_leaving = [], []
        for t in reversed(range(scores.shape[1])):
            of_filtered = of_last if real is None else of_last * real[:, t]
            rest = given[t] - of_filtered.sum(-1, keepdim=True)
            of_joint = torch.addcmul(of_filtered, rest, posterior[t])
            of_left = (came[:, t] @ (of_predicted[:, t] + of_joint).unsqueeze(-1)).squeeze(-1)
            of_last = of_left if real is None else of_left + (of_last - of_filtered)
            of_joints.append(of_joint)
            of_leaving.append(of_left)
        of_emissions, of_norms = (torch.stack(each[::-1], 1) for each in (of_joints, of_leaving))
        of_scores = of_predicted + of_emissions
        of_scores -= (of_norms.unsqueeze(-2) @ goes).squeeze(-2)
        return of_scores, of_emissions, of_last, None


def _real_items(mask: Tensor | None, num_steps: int) -> list[Tensor | None]:
    """Return, for each step, the items that take it, (B, 1); None if all do."""
    if mask is None:
        return [None] * num_steps
    everyone = mask.all(0).tolist()
    return [None if all_real else mask[:, t, None] for t, all_real in enumerate(everyone)]
