"""Auxiliary losses in addition to the likelihood of the targets, and word dropout.

Axes: B examples, T target positions, S source positions.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...data.vocabularies._vocabulary import UNKNOWN

# Added to weights before their logarithm: sparse attention has weights of 0, and near 0 the gradient of the logarithm
# would be extremely large.
_FLOOR = 0.01


def alignment_loss(
    weights: Float[Tensor, "B T S"], alignment: Bool[Tensor, "B T S"], *, exclusive: bool = True
) -> Float[Tensor, ""]:
    """Compute the cross-entropy between true alignments and attention, summed over the aligned target positions.

        exclusive   - sum over s of a[t, s] log w[t, s],   a[t] uniform over the sources of t
        otherwise   - sum over s of log w[t, s] if t is aligned to s, log(1 - w[t, s]) elsewhere

    Sparse attention has no gradient where its weight is 0 and may not recover from an error: supervise a softmax
    instead. References: Mi et al. 2016; Liu et al. 2016 (supervised attention).

    Args:
        weights: The attention weights of each step, 0 on padding.
        alignment: The source positions that each target token is aligned to.
        exclusive: Whether attention chooses one position, as a softmax does, or selects each position independently, as
            sigmoid and segment attention do.

    Returns:
        The summed loss.
    """
    aligned = alignment.to(weights.dtype)
    chosen = (weights + _FLOOR).log()
    if exclusive:
        return -(aligned * chosen / aligned.sum(-1, keepdim=True).clamp(min=1)).sum()
    left = (1 - weights.clamp(max=1.0) + _FLOOR).log()
    has_any = alignment.any(-1)
    losses = -torch.where(alignment, chosen, left).sum(-1)
    return losses.masked_fill(~has_any, 0.0).sum()


def doubly_stochastic_loss(
    weights: Float[Tensor, "B T S"], mask: Bool[Tensor, "B T"], places: Bool[Tensor, "B S"]
) -> Float[Tensor, ""]:
    """Penalize positions whose attention weights do not sum to 1 over all steps: sum over s of (1 - sum over t of w[t,
    s])^2 (Xu et al. 2015, eq. 14).

    Args:
        weights: The attention weights of each step.
        mask: True on real steps.
        places: True on real positions.

    Returns:
        The summed loss.
    """
    read = (weights * mask.unsqueeze(-1)).sum(-2)
    return (1 - read).square().masked_fill(~places, 0.0).sum()


def word_dropout(
    tokens: Int[Tensor, "B *places"], mask: Bool[Tensor, "B *places"], rate: float
) -> Int[Tensor, "B *places"]:
    """Replace random tokens by the unknown token, which teaches a model to read texts with unknown words.

    Args:
        tokens: Token ids of a `Vocabulary`.
        mask: True on real tokens; padding stays unchanged.
        rate: The probability with which each token is replaced.

    Returns:
        The tokens after replacement.

    Examples:
        >>> tokens = torch.tensor([[7, 8, 0]])
        >>> word_dropout(tokens, tokens != 0, rate=1.0)
        tensor([[1, 1, 0]])
    """
    if rate == 0:
        return tokens
    hidden = torch.rand(tokens.shape, device=tokens.device) < rate
    return tokens.masked_fill(hidden & mask, UNKNOWN)
