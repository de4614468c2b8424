"""Reductions for a recursion: one recursion computes every method, each with a different reduction.

    reduction          result along the axis     its gradient
    logsumexp          log sum exp               probabilities: the gradient of log Z is the marginals
    maximum            the highest score         1 on the first highest: the best structure
    draw(generator)    log sum exp               1 on an entry sampled from the probabilities: a sample
    preferred_maximum  the highest score among   1 on that entry: the best structure with given parts
                       the most given parts

References: Eisner 2016 (marginals by backpropagation); Stanojevic & Sartran 2023 (SynJax: argmax and
samples as gradients under other semirings).
"""

from collections.abc import Callable

import torch
from torch import Tensor

# reduction(scores, axis): the axis is removed.
Reduction = Callable[[Tensor, int], Tensor]


def logsumexp(scores: Tensor, axis: int) -> Tensor:
    """Compute log sum exp; if all scores are -inf, the result is -inf and the gradient is 0, not NaN."""
    impossible = (scores == -torch.inf).all(axis, keepdim=True)
    found = scores.masked_fill(impossible, 0.0).logsumexp(axis)
    return found.masked_fill(impossible.squeeze(axis), -torch.inf)


def maximum(scores: Tensor, axis: int) -> Tensor:
    """Compute the highest score; the gradient goes to one entry, even if several are highest."""
    return scores.max(axis).values


def draw(generator: torch.Generator | None) -> Reduction:
    """Return a logsumexp whose gradient goes to one entry, sampled with its probability."""

    def reduce(scores: Tensor, axis: int) -> Tensor:
        probabilities = torch.nan_to_num(scores.detach().softmax(axis))
        # argmax(p / e) with exponential e is a sample from p (a race of exponentials).
        noise = torch.empty_like(probabilities).exponential_(generator=generator)
        drawn = (probabilities / noise).argmax(axis, keepdim=True)
        picked = scores.gather(axis, drawn).squeeze(axis)
        picked = picked.masked_fill(picked == -torch.inf, 0.0)  # -inf - -inf is NaN
        return logsumexp(scores.detach(), axis) + (picked - picked.detach())

    return reduce


def preferred_maximum(scores: Tensor, axis: int) -> Tensor:
    """Compute the highest pair (number of preferred parts, score) in lexicographic order.

    The first half of the batch holds the numbers and the second half the scores. The sums of a
    recursion add both.
    """
    numbers, scores = scores.chunk(2)
    most = numbers.amax(axis, keepdim=True)
    index = torch.where(numbers == most, scores, -torch.inf).argmax(axis, keepdim=True)
    return torch.cat([part.gather(axis, index).squeeze(axis) for part in (numbers, scores)])
