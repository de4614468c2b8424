"""What the steps of a search have chosen, put together once at the end.

Items leave the batch while a search runs, so that the rows of later steps belong to fewer items.

Axes: B items, b those that are still there, T steps.
"""

from typing import final

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

_FEWEST = 2  # items in a batch


@final
class Journal:
    """One row of entries for each step, each entry a tensor that begins with the items."""

    def __init__(self, num_items: int) -> None:
        self.num_items, self.num_steps = num_items, 0
        self._items: Tensor | None = None  # None: all of them
        self._parts: list[tuple[Tensor | None, list[tuple[Tensor, ...]]]] = [(None, [])]

    def write(self, *entries: Shaped[Tensor, "b ..."]) -> None:
        """The next step; entries come in the same order at every step."""
        self._parts[-1][1].append(entries)
        self.num_steps += 1

    def keep(self, items: Int[Tensor, " b"]) -> None:
        """From here on, rows have these of the present items."""
        self._items = items if self._items is None else self._items[items]
        self._parts.append((self._items, []))

    @property
    def items(self) -> Int[Tensor, " b"] | slice:
        """Which of all items the present ones are."""
        return slice(None) if self._items is None else self._items

    def read(self, entry: int, fill: float | int) -> Shaped[Tensor, "B T ..."]:
        """One entry of all steps; `fill` where the item had left."""
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
    """Which items stay in the batch when those that are done leave it; None: it is not worth while.

    To leave costs about a step of the items that stay, so a fair part must be done: with outputs of 9
    tokens, give or take 3, a quarter was best or near it at 32, 64 and 256 items, greedy and with 5
    hypotheses. Two stay, even if one of them is done: a product of one row sums in another order than
    that of two or more, and an answer would depend on who was in the batch with it.
    """
    if 4 * num_done < len(done) or len(done) <= _FEWEST:
        return None
    # Sorted by being done, and otherwise in their order: the first are those that are not.
    order = done.squeeze(1).to(torch.int8).argsort(stable=True)
    return order[: max(_FEWEST, len(done) - num_done)]
