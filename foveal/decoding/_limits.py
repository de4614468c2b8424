"""Length limits of outputs: one number, or one for each item.

Axes: B items.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils import _pytree as pytree

from ..errors import ShapeError, ValueRangeError


class Limit(NamedTuple):
    """The limits include the end symbol. `stops` are the lengths at which an item must stop."""

    longest: int
    each: Int[Tensor, " B"] | None  # None: the same limit for all items
    stops: frozenset[int]

    def lengths(self, num_items: int) -> list[int]:
        """Return the limit of each item."""
        return [self.longest] * num_items if self.each is None else self.each.tolist()

    def keep(self, items: Int[Tensor, " b"]) -> "Limit":
        """Select these items."""
        return self if self.each is None else self._replace(each=self.each[items])


def limit_of(
    max_length: int | Int[Tensor, " B"], min_length: int, num_items: int, search: str
) -> Limit:
    """Check the arguments and build the limit."""
    if isinstance(max_length, Tensor):
        if max_length.shape != (num_items,):
            raise ShapeError(
                f"{search}: max_length must be an int or have shape ({num_items},), one for each "
                f"item, got {tuple(max_length.shape)}."
            )
        lengths = max_length.tolist()
    else:
        lengths = [max_length]
    if min(lengths, default=1) < max(1, min_length):
        raise ValueRangeError(
            f"{search}: max_length must be at least 1 and at least min_length={min_length}, got "
            f"{min(lengths)}. Both count the end token."
        )
    each = max_length if isinstance(max_length, Tensor) and len(set(lengths)) > 1 else None
    return Limit(max(lengths, default=1), each, frozenset(lengths))


def first_tokens(begin: int | Int[Tensor, " B"], num_items: int, state: Any) -> Int[Tensor, "B 1"]:
    """Return the begin symbol of every item, on the device of the first tensor in the state."""
    if isinstance(begin, Tensor):
        return begin.unsqueeze(1)
    tensors = (leaf for leaf in pytree.tree_iter(state) if isinstance(leaf, Tensor))
    device = next((tensor.device for tensor in tensors), None)
    return torch.full((num_items, 1), begin, device=device)
