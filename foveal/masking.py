"""The mask convention: masks are boolean and True on real tokens; any pattern is allowed.

The values at padded positions (junk, NaN, inf) never influence a result.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def mask_from_lengths(lengths: Int[Tensor, "*batch"], size: int) -> Bool[Tensor, "*batch {size}"]:
    """Return a mask that is True on the first `lengths` positions of each row.

    Args:
        lengths: Number of real positions in each row.
        size: Number of positions, with padding.

    Returns:
        A mask with a new last axis.

    Examples:
        >>> mask_from_lengths(torch.tensor([1, 3]), 3)
        tensor([[ True, False, False],
                [ True,  True,  True]])
    """
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)


def forbid_padding(
    scores: Float[Tensor, "*#batch n"], mask: Bool[Tensor, "*#batch n"] | None
) -> Float[Tensor, "*#batch n"]:
    """Return the log-potentials with -inf where the mask is False.

    Args:
        scores: Log-potentials.
        mask: True on real positions; None if all are real.

    Returns:
        The scores, which are the same tensor without a mask.
    """
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def linked_steps(mask: Bool[Tensor, "*batch T"]) -> Bool[Tensor, "*batch T-1"]:
    """Return a mask that is True at t-1 where t is real and some real position precedes it.

    The step into such a t connects it to the nearest real position before it; every other step connects nothing.
    Two real positions with only padding between them are neighbors.

    Args:
        mask: True on real positions.

    Returns:
        A mask of the steps, one shorter than the positions.

    Examples:
        >>> linked_steps(torch.tensor([False, True, False, True]))
        tensor([False, False,  True])
    """
    seen = mask.cumsum(-1) > 0
    return mask[..., 1:] & seen[..., :-1]


def previous_real(mask: Bool[Tensor, "*batch T"]) -> Int[Tensor, "*batch T-1"]:
    """Return the index of the nearest real position before each t = 1..T-1 (0 where there is none).

    Args:
        mask: True on real positions.

    Returns:
        Index for each position except the first.

    Examples:
        >>> previous_real(torch.tensor([True, False, True, True]))
        tensor([0, 0, 2])
    """
    index = torch.arange(mask.shape[-1], device=mask.device).expand(mask.shape)
    latest = torch.where(mask, index, 0).cummax(-1).values
    return latest[..., :-1]
