"""Memory: the values that attention reads, with their mask and their layout.

Axes: *batch any leading shape, S positions in memory, V width of a value.
"""

from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils import _pytree as pytree

from ..errors import ShapeError


class Layout(NamedTuple):
    """Layout of the S positions: a sequence, a grid of rows and columns, sentences of words, or a list
    of facts.

    Segment attention ends its segments at the rows of a grid, and plots follow the layout. Attention
    that selects positions one by one ignores it.
    """

    kind: Literal["sequence", "grid", "sentences", "facts"] = "sequence"
    rows: int | None = None  # grid: its height; sentences: how many
    columns: int | None = None  # grid: its width; sentences: words in the longest
    # For a grid over an image: pixels between the centers of neighboring cells, down and right; the
    # first cell is centered on the first pixel. None: the cells divide the image evenly.
    pitch: tuple[int, int] | None = None


SEQUENCE = Layout()


class Memory(NamedTuple):
    """Encoded inputs.

    `Attention.remember` computes `keys` from the values once, and every step reads them.
    """

    values: Float[Tensor, "*batch S V"]
    mask: Bool[Tensor, "*batch S"] | None = None  # True on real positions
    summary: Float[Tensor, "*batch D"] | None = None  # one vector for the whole memory, if any
    layout: Layout = SEQUENCE
    keys: Any = None
    # The token of each position in the vocabulary of the outputs, for decoders that copy.
    copies: Int[Tensor, "*batch S"] | None = None

    def cleared(self, owner: str) -> "Memory":
        """Return the memory with padding set to 0.

        Padding then affects neither the output nor the gradients, even if it holds NaN (0 * NaN is NaN).

        Args:
            owner: Name that the error message starts with.

        Returns:
            The same memory if it has no mask, otherwise a copy.

        Raises:
            ShapeError: The mask is not boolean.
        """
        if self.mask is None:
            return self
        check_boolean(self.mask, owner)
        return self._replace(values=self.values.masked_fill(~self.mask.unsqueeze(-1), 0.0))

    def take(self, items: Int[Tensor, " B"]) -> "Memory":
        """Select these items of a batch, in this order, with all tensors in their keys.

        Args:
            items: Indices into the first batch axis; an item may repeat.

        Returns:
            A memory whose batch has one item for each index.
        """
        return pytree.tree_map_only(Tensor, lambda part: part.index_select(0, items), self)


def check_boolean(mask: Tensor, owner: str) -> None:
    """Raise an error unless the mask is boolean."""
    if mask.dtype != torch.bool:
        raise ShapeError(
            f"{owner}: the mask of a memory must be boolean, True on real positions, got "
            f"{mask.dtype}. Pass mask.bool() if 1 means real, ~mask.bool() if 1 means padding."
        )


def grid_memory(features: Float[Tensor, "*batch h w V"]) -> Memory:
    """Flatten the cells of an image grid to S = h * w positions, row by row.

    Args:
        features: Feature maps of images, channels last.

    Returns:
        A memory with the layout "grid", of h rows and w columns.

    Raises:
        ShapeError: The features have fewer than three axes.

    Examples:
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
