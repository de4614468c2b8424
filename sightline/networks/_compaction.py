"""Any mask as right padding: the real positions moved to the front, in order, and back again.

Axes: B batch, T positions, D width.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


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


def to_front(values: Float[Tensor, "B T D"], moved: Compaction) -> Float[Tensor, "B T D"]:
    """The real positions at the front."""
    return values.gather(1, moved.order.unsqueeze(-1).expand_as(values))


def to_places(values: Float[Tensor, "B T D"], moved: Compaction) -> Float[Tensor, "B T D"]:
    """Back to where they came from."""
    index = moved.order.unsqueeze(-1).expand_as(values)
    return torch.zeros_like(values).scatter(1, index, values)
