"""What a task does for its model to learn: first values, losses beside the likelihood of the targets,
and what is hidden of a source.

Axes: B examples, T target places, S source places.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ...data.vocabularies._vocabulary import UNKNOWN
from ...networks import initialize_uniform

# Added to weights before their logarithm: sparse attention has weights of 0, and beside 0 the
# gradient of the logarithm would be a step out of all proportion.
_FLOOR = 0.01


def start_near_zero(model: nn.Module) -> None:
    """Make the first vectors of words small. A word that is seen twice in training keeps most of its
    first vector, which at the size that torch gives it drowns what the other words say.
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            initialize_uniform(module)


def alignment_loss(
    weights: Float[Tensor, "B T S"], alignment: Bool[Tensor, "B T S"], *, exclusive: bool = True
) -> Float[Tensor, ""]:
    """Cross-entropy between true alignments and attention, summed over the target places that have
    an alignment; those without are left alone.

        exclusive   - sum over s of a[t, s] log w[t, s],   a[t] uniform over where t comes from
        otherwise   - sum over s of log w[t, s] where t comes from s, log(1 - w[t, s]) elsewhere

    Sparse attention has no gradient where its weight is 0, and may stay where it went wrong: teach a
    softmax instead. References: Mi et al. 2016; Liu et al. 2016 (supervised attention).

    Args:
        weights: what was read at each step, 0 on padding.
        alignment: which places the target symbol comes from.
        exclusive: attention chooses one place, as a softmax does; otherwise it takes or leaves each,
            as sigmoid and segment attention do.
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
    """sum over places of (1 - what all steps read of it)^2: every place should be read once, in all
    (Xu et al. 2015, eq. 14).

    Args:
        weights: what was read at each step.
        mask: which steps are real.
        places: which places are.
    """
    read = (weights * mask.unsqueeze(-1)).sum(-2)
    return (1 - read).square().masked_fill(~places, 0.0).sum()


def hide(
    tokens: Int[Tensor, "B *places"], mask: Bool[Tensor, "B *places"], share: float
) -> Int[Tensor, "B *places"]:
    """Some tokens made unknown, each with the same probability, so that a model learns what to do
    about symbols it does not know.
    """
    if share == 0:
        return tokens
    hidden = torch.rand(tokens.shape, device=tokens.device) < share
    return tokens.masked_fill(hidden & mask, UNKNOWN)
