"""Convert any mask to right padding: move the real positions to the front, in order, and back.

Axes: B batch, T positions, D width.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..masking import mask_from_lengths


class Compaction(NamedTuple):
    """The permutation of positions: position `order[b, t]` moves to position t."""

    order: Int[Tensor, "B T"]
    lengths: Int[Tensor, " B"]


def compaction(mask: Bool[Tensor, "B T"]) -> Compaction:
    """Move real positions to the front, in their order.

    Args:
        mask: True on real positions.

    Returns:
        The new order of the positions and the number of real positions.

    Examples:
        >>> compaction(torch.tensor([[False, True, False, True]]))
        Compaction(order=tensor([[1, 3, 0, 2]]), lengths=tensor([2]))
    """
    return Compaction(torch.argsort((~mask).int(), dim=-1, stable=True), mask.sum(-1))


def arranged(mask: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, " B"] | None, Compaction | None]:
    """Return lengths and the conversion to right padding; None if there is no padding or nothing to move.

    Most batches have no padding, or only at the end, and checking the mask saves two copies of the inputs.
    On devices other than a CPU, the check is skipped because it would synchronize.
    """
    if mask.device.type == "cpu" and not torch.compiler.is_compiling():
        if bool(mask.all()):
            return None, None
        lengths = mask.sum(-1)
        if bool((mask == mask_from_lengths(lengths, mask.shape[-1])).all()):
            return lengths, None
    moved = compaction(mask)
    return moved.lengths, moved


def to_front(values: Float[Tensor, "B T D"], moved: Compaction) -> Float[Tensor, "B T D"]:
    """Move the real positions to the front."""
    return values.gather(1, moved.order.unsqueeze(-1).expand_as(values))


def to_places(values: Float[Tensor, "B T D"], moved: Compaction) -> Float[Tensor, "B T D"]:
    """Move the positions back."""
    index = moved.order.unsqueeze(-1).expand_as(values)
    return torch.zeros_like(values).scatter(1, index, values)
