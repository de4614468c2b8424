"""Functions that move the real positions of a row to its end, after the padding, and back.

All rows then end at the same position, and the mask only determines where a row starts.
"""

from jaxtyping import Bool, Int
from torch import Tensor


def order(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Return the order that moves padding to the front and keeps the order of real positions."""
    return mask.int().argsort(stable=True, dim=-1)


def places(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Return the new index of each real position under `order`; entries for padding are arbitrary."""
    rank = mask.cumsum(-1)
    return (mask.shape[-1] - rank[:, -1:] + rank - 1).clamp(min=0)


def take(part: Tensor, index: Int[Tensor, "B t"], axis: int = 1) -> Tensor:
    """Select entries along an axis of `part` (B, ...) with an index for each row."""
    shape = [len(index), *(1,) * (part.ndim - 1)]
    shape[axis] = index.shape[1]
    sizes = list(part.shape)
    sizes[axis] = index.shape[1]
    return part.gather(axis, index.reshape(shape).expand(sizes))
