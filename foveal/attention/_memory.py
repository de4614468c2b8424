"""What attention reads: values with a mask, and how they lie.

Axes: *batch any leading shape, S places in memory, V width of a value.
"""

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils import _pytree as pytree

from ..errors import ShapeError


class Layout(NamedTuple):
    """How the S places lie: in a row, on a grid of rows and columns, as sentences of words, or
    as a list of facts. Attention that selects one place, or each by itself, does not care; runs of
    places end with the rows of a grid, and pictures are laid out like this.
    """

    kind: Literal["sequence", "grid", "sentences", "facts"] = "sequence"
    rows: int | None = None  # grid: its height; sentences: how many
    columns: int | None = None  # grid: its width; sentences: words in the longest
    # Of a grid over an image: pixels from the center of a cell to the next, down and right, where the
    # first cell is centered on the first pixel. None: the cells share the image evenly.
    pitch: tuple[int, int] | None = None


SEQUENCE = Layout()


class Memory(NamedTuple):
    """Encoded inputs. `keys` is what one scorer made of the values: made once by
    `Attention.remember`, read at every step.
    """

    values: Float[Tensor, "*batch S V"]
    mask: Bool[Tensor, "*batch S"] | None = None  # True on real places
    summary: Float[Tensor, "*batch D"] | None = None  # one vector for all of it, if there is one
    layout: Layout = SEQUENCE
    keys: Any = None

    def cleared(self, owner: str) -> "Memory":
        """The memory with 0 in place of what padding holds, so that it reaches neither a result nor
        the gradient of a weight: 0 * NaN is NaN.

        Raises:
            ShapeError: the mask is not boolean.
        """
        if self.mask is None:
            return self
        check_boolean(self.mask, owner)
        return self._replace(values=self.values.masked_fill(~self.mask.unsqueeze(-1), 0.0))

    def take(self, items: Int[Tensor, " B"]) -> "Memory":
        """The memories of these items of a batch, in this order; keys are whatever a scorer or a
        reader has made of the values.
        """
        return pytree.tree_map_only(Tensor, lambda part: part.index_select(0, items), self)


def check_boolean(mask: Tensor, owner: str) -> None:
    """Refuse a mask of numbers."""
    if mask.dtype != torch.bool:
        raise ShapeError(
            f"{owner}: the mask of a memory must be boolean, True on real places, got "
            f"{mask.dtype}. Pass mask.bool() if 1 means real, ~mask.bool() if 1 means padding."
        )


def grid_memory(features: Float[Tensor, "*batch h w V"]) -> Memory:
    """The cells of an image grid as S = h * w places, row by row.

    >>> import torch
    >>> grid_memory(torch.zeros(1, 14, 14, 512)).values.shape
    torch.Size([1, 196, 512])
    """
    if features.ndim < 3:
        raise ShapeError(
            f"grid_memory: features must have shape (..., h, w, V), got {tuple(features.shape)}. "
            f"Move the channels of a (..., V, h, w) tensor last with movedim(-3, -1)."
        )
    rows, columns = features.shape[-3:-1]
    return Memory(features.flatten(-3, -2), layout=Layout("grid", rows, columns))
