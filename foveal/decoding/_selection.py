"""Top-k selection: the k largest entries of each row.

Axes: B rows, M entries of each, k selected.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

# torch.topk scans a row entry by entry, whereas the maxima of short blocks are vectorized. From this row
# length (measured on one core) it is faster to search only the best blocks.
LONG_ROW = 4096
BLOCK = 64
# torch.topk uses a heap from this many entries per selected entry. Below, it partitions, which takes three
# times longer just below this limit; rows that are nearly long enough are padded.
ENTRIES_FOR_A_HEAP = 64


class Selected(NamedTuple):
    """The selected entries, largest first."""

    values: Float[Tensor, "B k"]
    places: Int[Tensor, "B k"]


def largest(rows: Float[Tensor, "B M"], k: int) -> Selected:
    """Select the k largest entries of each row, or all of them if there are fewer.

    The k largest entries are in the k blocks with the largest maxima. In a long row, the search therefore
    covers only these blocks and the remainder after the last block.

    Ties are broken by the row, its length and k only. If the algorithm depended on the number of rows,
    the result of an item would depend on its batch.
    """
    size = rows.shape[1]
    if size >= max(LONG_ROW, 4 * BLOCK * k):
        return _largest_by_blocks(rows, k)
    if k == 1:
        return Selected(*rows.max(1, keepdim=True))
    if size < ENTRIES_FOR_A_HEAP * k <= 2 * size:
        values, places = pad(rows, (0, ENTRIES_FOR_A_HEAP * k - size), value=-torch.inf).topk(k)
        return Selected(values, places.clamp(max=size - 1))  # impossible entries may have any index
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
