"""Any mask as right padding: the real positions moved to the front, in order, and back again.

Axes: B batch, T positions, D width.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..masking import mask_from_lengths


class Compaction(NamedTuple):
    """Where each position goes: `order[b, t]` is the one that comes to place t."""

    order: Int[Tensor, "B T"]
    lengths: Int[Tensor, " B"]


def compaction(mask: Bool[Tensor, "B T"]) -> Compaction:
    """Real positions first, in their order.

    >>> compaction(torch.tensor([[False, True, False, True]]))
    Compaction(order=tensor([[1, 3, 0, 2]]), lengths=tensor([2]))
    """
    return Compaction(torch.argsort((~mask).int(), dim=-1, stable=True), mask.sum(-1))


def arranged(mask: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, " B"] | None, Compaction | None]:
    """Lengths and a way to right padding; None where there is no padding, or nothing to move.

    The usual batches have none or theirs at the end, and a look at the mask saves copying all of
    the inputs, twice. On another device than a CPU the look would wait for all that is under way.
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
    """The real positions at the front."""
    return values.gather(1, moved.order.unsqueeze(-1).expand_as(values))


def to_places(values: Float[Tensor, "B T D"], moved: Compaction) -> Float[Tensor, "B T D"]:
    """Back to where they came from."""
    index = moved.order.unsqueeze(-1).expand_as(values)
    return torch.zeros_like(values).scatter(1, index, values)
