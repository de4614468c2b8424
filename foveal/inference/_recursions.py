"""Functions that the recursions of several structures share."""

import torch
from jaxtyping import Float
from torch import Tensor


def keep(part: Tensor, kept: Tensor | None) -> Tensor:
    """Set `part` (*axes, ...) to 0 where `kept` (*axes) is False; return it unchanged if `kept` is None."""
    if kept is None:
        return part
    return torch.where(kept.reshape(kept.shape + (1,) * (part.ndim - kept.ndim)), part, 0.0)


def largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of the last axis, sorted, and their indices. For k = 1, `max` takes
    a fraction of the time of `topk`.
    """
    found = scores.max(-1, keepdim=True) if k == 1 else scores.topk(k, -1)
    return found.values, found.indices


def softmax_or_zero(
    scores: Float[Tensor, "*batch K"], dtype: torch.dtype
) -> Float[Tensor, "*batch K"]:
    """Compute the softmax over the last axis; return 0 for all entries if every score is -inf."""
    impossible = (scores == -torch.inf).all(-1, keepdim=True)
    return torch.where(impossible, 0.0, scores.softmax(-1)).to(dtype)
