"""The choices of a search at each step, assembled once at the end.

Items leave the batch during a search, so the rows of later steps have fewer items.

Axes: B items, b items still in the batch, T steps.
"""

from typing import final

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

_FEWEST = 2  # items in a batch


@final
class Journal:
    """Stores one row of entries for each step; the first axis of each entry is the items."""

    def __init__(self, num_items: int) -> None:
        self.num_items, self.num_steps = num_items, 0
        self._items: Tensor | None = None  # None: all items
        self._parts: list[tuple[Tensor | None, list[tuple[Tensor, ...]]]] = [(None, [])]

    def write(self, *entries: Shaped[Tensor, "b ..."]) -> None:
        """Write the next step; entries have the same order at every step."""
        self._parts[-1][1].append(entries)
        self.num_steps += 1

    def keep(self, items: Int[Tensor, " b"]) -> None:
        """Keep only these of the current items in later rows."""
        self._items = items if self._items is None else self._items[items]
        self._parts.append((self._items, []))

    @property
    def items(self) -> Int[Tensor, " b"] | slice:
        """Return the indices of the current items among all items."""
        return slice(None) if self._items is None else self._items

    def read(self, entry: int, fill: float | int) -> Shaped[Tensor, "B T ..."]:
        """Read one entry of all steps; steps after an item has left hold `fill`."""
        parts = [
            (items, torch.stack([row[entry] for row in rows], 1))
            for items, rows in self._parts
            if rows
        ]
        if len(parts) == 1:
            return parts[0][1]
        first = parts[0][1]
        whole = first.new_full((self.num_items, self.num_steps, *first.shape[2:]), fill)
        start = 0
        for items, part in parts:
            stop = start + part.shape[1]
            whole[slice(None) if items is None else items, start:stop] = part
            start = stop
        return whole


def staying(done: Bool[Tensor, "b 1"], num_done: int) -> Int[Tensor, " n"] | None:
    """Return the items that stay in the batch when finished items leave it; None if removal does not pay off.

    Removal costs about a step of the remaining items, so a sufficient fraction must be done. With outputs
    of 9 +- 3 tokens, a quarter was best or close to best at 32, 64 and 256 items, for greedy search and
    for 5 hypotheses. At least two items stay, even if one of them is done: a matrix product with one row
    sums in a different order, and the result of an item would depend on its batch.
    """
    if 4 * num_done < len(done) or len(done) <= _FEWEST:
        return None
    # A stable sort by done puts the unfinished items first, in their order.
    order = done.squeeze(1).to(torch.int8).argsort(stable=True)
    return order[: max(_FEWEST, len(done) - num_done)]
