"""Real positions moved to the end of their row, padding before them, and back.

Then every row ends at the same place and a mask decides no more than where it starts.
"""

from jaxtyping import Bool, Int
from torch import Tensor


def order(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Return the order that moves padding to the front and keeps the order of real positions."""
    return mask.int().argsort(stable=True, dim=-1)


def places(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Where `order` puts each real position; for padding, anywhere."""
    rank = mask.cumsum(-1)
    return (mask.shape[-1] - rank[:, -1:] + rank - 1).clamp(min=0)


def take(part: Tensor, index: Int[Tensor, "B t"], axis: int = 1) -> Tensor:
    """Entries of an axis of `part` (B, ...) by an index for each row."""
    shape = [len(index), *(1,) * (part.ndim - 1)]
    shape[axis] = index.shape[1]
    sizes = list(part.shape)
    sizes[axis] = index.shape[1]
    return part.gather(axis, index.reshape(shape).expand(sizes))
