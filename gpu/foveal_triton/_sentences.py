"""The words of sentences and the launches by widths, which the ops of projective trees and of bracketings share.

Axes: B batch, M nodes of the input, N nodes of a chart.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._launching import launch, tile_size

# The sizes of the axis of a tile that has splits or nodes. The first is a warp; more sizes would leave fewer
# lanes empty, and each is a kernel to compile at the first call.
LANES = (32, 128, 256)


class Words(NamedTuple):
    """The real nodes of the input: their indices (B, M) in order, and their number (B,)."""

    places: Tensor
    counts: Tensor

    @classmethod
    def of(cls, mask: Tensor, before: int) -> "Words":
        """Count the words of a mask; `before` nodes before them are always real."""
        real = pad(mask, (before, 0), value=True)
        places = real.logical_not().to(torch.int32).argsort(dim=-1, stable=True)
        return cls(places.to(torch.int32), real.sum(-1, dtype=torch.int32))


class Nodes(NamedTuple):
    """The nodes of the charts of a batch."""

    batch: int
    num_nodes: int  # N
    shift: int  # M - N
    words: Words | None

    def masked(self, unread: Tensor) -> Words:
        """Return places and counts, or a tensor in place of those that no kernel reads."""
        return Words(unread, unread) if self.words is None else self.words

    @property
    def splits(self) -> int:
        """The number of splits of all spans."""
        return (self.num_nodes**3 - self.num_nodes) // 6

    def ascending(self) -> Iterable[int]:
        """Return the widths of spans of two nodes or more, from the narrowest."""
        return range(1, self.num_nodes)

    def descending(self) -> Iterable[int]:
        """Return the widths from the widest."""
        return range(self.num_nodes - 1, 0, -1)

    def launch(
        self, kernel: Any, width: int, options: int, tensors: Iterable[Tensor], *numbers: int, **constants: Any
    ) -> None:  # fmt: skip
        """Launch a kernel on the spans of one width.

        Args:
            kernel: Its arguments are `tensors`, the number of spans, their width, N and `numbers`.
            width: The width.
            options: The largest number of splits or of parents of a span.
            tensors: The tensors of the kernel.
            numbers: Further numbers of the kernel.
            constants: Constants of the kernel, in addition to tile sizes.
        """
        rows, lanes = self.batch * (self.num_nodes - width), lanes_of(options)
        block = max(1, tile_size() // lanes)
        launch(
            kernel, (-(-rows // block),), *tensors, rows, width, self.num_nodes, *numbers,
            BLOCK=block, SPLITS=lanes, MASKED=self.words is not None, num_warps=4, **constants,
        )  # fmt: skip

    def launch_rows(
        self, kernel: Any, rows: int, nodes: int, tensors: Iterable[Tensor], *numbers: int, **constants: Any
    ) -> None:  # fmt: skip
        """Launch a kernel on rows of `nodes` nodes; its arguments are `tensors`, `rows` and `numbers`."""
        lanes = lanes_of(nodes)
        block = max(1, tile_size() // lanes)
        launch(
            kernel, (-(-rows // block),), *tensors, rows, *numbers,
            BLOCK=block, LANES=lanes, MASKED=self.words is not None, num_warps=4, **constants,
        )  # fmt: skip


def lanes_of(options: int) -> int:
    """Return the smallest size of a tile that has these splits or nodes."""
    return min(lanes for lanes in LANES if lanes >= options)
