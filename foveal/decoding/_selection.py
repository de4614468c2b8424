"""The best of many: the k largest entries of each row.

Axes: B rows, M entries of each, k chosen.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

# torch looks at the entries of a row one after the other, and takes the maxima of short blocks many
# at once. From this length on (measured on one core) it pays to look into the best blocks only.
LONG_ROW = 4096
BLOCK = 64
# torch.topk selects with a heap from this many entries for each chosen one on, and before that by
# partitioning, which takes three times as long just below: rows that are nearly long enough are
# filled up.
ENTRIES_FOR_A_HEAP = 64


class Selected(NamedTuple):
    """The largest first."""

    values: Float[Tensor, "B k"]
    places: Int[Tensor, "B k"]


def largest(rows: Float[Tensor, "B M"], k: int) -> Selected:
    """The k largest entries of each row; all of them, if there are fewer.

    The k largest entries are in the k blocks with the largest maxima, so that of a long row only
    those are searched, and what is left over after the last block.

    Which of several equal entries is chosen depends on the row, its length and k only. A choice of
    the algorithm by the number of rows would make the result of an item depend on its batch.
    """
    size = rows.shape[1]
    if size >= max(LONG_ROW, 4 * BLOCK * k):
        return _largest_by_blocks(rows, k)
    if k == 1:
        return Selected(*rows.max(1, keepdim=True))
    if size < ENTRIES_FOR_A_HEAP * k <= 2 * size:
        values, places = pad(rows, (0, ENTRIES_FOR_A_HEAP * k - size), value=-torch.inf).topk(k)
        return Selected(values, places.clamp(max=size - 1))  # of what is impossible, any will do
    return Selected(*rows.topk(min(k, size)))


def _largest_by_blocks(rows: Float[Tensor, "B M"], k: int) -> Selected:
    B, M = rows.shape
    num_blocks = M // BLOCK
    maxima = rows[:, : num_blocks * BLOCK].unflatten(1, (num_blocks, BLOCK)).amax(2)
    first = maxima.topk(k).indices.unsqueeze(2) * BLOCK
    inside = (first + torch.arange(BLOCK, device=rows.device)).flatten(1)
    rest = torch.arange(num_blocks * BLOCK, M, device=rows.device).expand(B, -1)
    places = torch.cat([inside, rest], 1)
    values, chosen = rows.gather(1, places).topk(k)
    return Selected(values, places.gather(1, chosen))
