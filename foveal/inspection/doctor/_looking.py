"""Attention in a few numbers.

    entropy   H(weights) / log(positions): 1 for uniform attention, 0 if one position has all the weight
    stuck     the largest mean weight of a position over the steps of an example: 1 if every step
              reads the same position
    first     the mean weight of the first position; last, of the last one
    total     the mean sum of the weights of a step: 1 if positions exclude each other
    padding   the largest weight of padded positions in a step

Weights that do not sum to 1 (sigmoid, segment) are divided by their sum first.

Axes: N rows, T queries, S positions.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ...tasks.base._forced import Looked

_LEAST_PLACES = 3  # with two positions, uniform attention hardly differs from other attention
_LEAST_QUERIES = 3  # below this, an example cannot be stuck


def looking(looked: Looked) -> dict[str, float]:
    """Summarize attention weights; numbers that these weights cannot determine are left out."""
    places = looked.places.unsqueeze(-2)
    total = looked.weights.sum(-1, keepdim=True)
    shares = looked.weights / total.clamp(min=torch.finfo(total.dtype).tiny)
    outside = torch.where(places, 0.0, shares).sum(-1)[looked.queries]
    found = {"padding": float(outside.max())} if outside.numel() else {}
    shares = torch.where(places, shares, 0.0)
    num_places = looked.places.sum(-1, keepdim=True).expand_as(looked.queries)
    told = looked.queries & (num_places >= _LEAST_PLACES) & (total.squeeze(-1) > 0)
    if not bool(told.any()):
        return found
    entropy = torch.special.entr(shares).sum(-1) / num_places.clamp(min=2).log()
    found["entropy"] = float(entropy[told].mean())
    found["total"] = float(total.squeeze(-1)[told].mean())
    several = told.sum(-1) >= _LEAST_QUERIES
    if bool(several.any()):
        means = _mean_over_queries(shares, told)[several]
        found["stuck"] = float(means.amax(-1).mean())
        real = looked.places[several]
        first = real.int().argmax(-1, keepdim=True)
        last = real.shape[-1] - 1 - real.flip(-1).int().argmax(-1, keepdim=True)
        found["first"] = float(means.gather(-1, first).mean())
        found["last"] = float(means.gather(-1, last).mean())
    return found


def _mean_over_queries(shares: Float[Tensor, "N T S"], told: Tensor) -> Float[Tensor, "N S"]:
    total = torch.where(told.unsqueeze(-1), shares, 0.0).sum(-2)
    return total / told.sum(-1, keepdim=True).clamp(min=1)
