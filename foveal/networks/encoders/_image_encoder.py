"""Images: a small convolutional network gives an h x w grid of vectors.

    x[l] = relu( norm( conv3x3 with a stride (x[l-1]) ) )
    v[i] = RNN along row i of x[L]                                    with `rows`

Each stage divides the height and the width by its stride. The norm is over the channels of one place (Ba
et al. 2016), so that no place depends on what lies far away or on the other images of a batch, or over all
places of a batch (Ioffe and Szegedy 2015), from which what is small on a blank page is learnt sooner. The first
stage has none: it reads pixels, which are all of one size, and is by far the largest. A recurrent network
along each row lets a cell know what stands beside it (Deng et al. 2017, section 3).

Convolutions read channels last: twice as fast on a CPU, three times in bfloat16.

Axes: *batch any leading shape, B that shape flattened, C channels, h and w height and width.
References: Xu et al. 2015, section 3.1.1 (a grid of vectors for attention); LeCun et al. 1998; Liu et al.
2018 (coordinates as channels).
"""

from collections.abc import Sequence
from typing import Literal, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import relu
from typing_extensions import override

from ...attention import Memory, grid_memory
from ...errors import ShapeError
from .._bridges import summarized
from ..recurrent._stacks import RecurrentStack
from ._batch_norm import BatchNorm
from ._encoder import AbstractEncoder

# Rows and columns are told in units of so many pixels: about as large as the pixels' own values.
_UNIT = 64.0


@final
class ImageEncoder(AbstractEncoder):
    """One stage for each of `sizes`, its number of channels; the summary is the mean over the grid.

    A mask says which pixels are real, for images of several sizes in one batch: an image encodes
    the same, whatever surrounds it.

    >>> encoder = ImageEncoder(1, sizes=(8, 16), strides=((2, 2), (4, 2)))
    >>> memory = encoder(torch.zeros(2, 1, 32, 20))
    >>> memory.values.shape, memory.layout
    (torch.Size([2, 20, 16]), Layout(kind='grid', rows=4, columns=5, pitch=None))

    Args:
        num_channels: of an image.
        sizes: channels of each stage.
        strides: of each stage in height and width; 2 and 2 where it is left out.
        rows: reads each row of the grid in order, if it is given.
        positions: the network reads the row and the column of each pixel as two more channels.
        norm: over what the stages but the first are normed: "layer", the channels of a place, or "batch",
            the places of a batch.
    """

    def __init__(
        self,
        num_channels: int,
        sizes: Sequence[int] = (32, 64, 128),
        *,
        strides: Sequence[tuple[int, int]] | None = None,
        rows: RecurrentStack | None = None,
        positions: bool = False,
        norm: Literal["layer", "batch"] = "layer",
    ) -> None:
        super().__init__()
        self.strides = [(2, 2)] * len(sizes) if strides is None else list(strides)
        if len(self.strides) != len(sizes):
            raise ShapeError(
                f"ImageEncoder: expected a stride for each of {len(sizes)} stages, got "
                f"{len(self.strides)}. Give a pair, height and width, for each of sizes."
            )
        if rows is not None and rows.input_size != sizes[-1]:
            raise ShapeError(
                f"ImageEncoder: rows must have input_size {sizes[-1]}, the channels of the last "
                f"stage, got {rows.input_size}."
            )
        self.positions = positions
        inputs = [num_channels + 2 * positions, *sizes[:-1]]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(below, size, kernel_size=3, stride=stride, padding=1)
            for below, size, stride in zip(inputs, sizes, self.strides, strict=True)
        )
        kind = nn.LayerNorm if norm == "layer" else BatchNorm
        self.norms = nn.ModuleList(kind(size) for size in sizes[1:])
        self.rows = rows
        self.value_size = self.summary_size = sizes[-1] if rows is None else rows.output_size

    @override
    def forward(
        self, inputs: Float[Tensor, "*batch C h w"], mask: Bool[Tensor, "*batch h w"] | None = None
    ) -> Memory:
        batch = inputs.shape[:-3]
        features = inputs.reshape(-1, *inputs.shape[-3:])
        real = None if mask is None else mask.reshape(-1, *mask.shape[-2:])
        if real is not None and real.all():
            real = None  # images of one size: nothing to set to 0 after each stage
        if self.positions:
            features = torch.cat([features, _positions(features)], -3)
        if real is not None:
            features = features.masked_fill(~real.unsqueeze(-3), 0.0)  # whatever padding holds
        features = features.contiguous(memory_format=torch.channels_last)
        for number, convolution in enumerate(self.convolutions):
            # Place i of the grid is centered on place stride * i of the one below.
            down, right = self.strides[number]
            real = None if real is None else real[..., ::down, ::right]
            features = convolution(features)
            features = relu(features if number == 0 else self._normed(number - 1, features, real))
            if real is not None:  # a product: four times as fast as filling
                features = features * real.unsqueeze(-3)
        grid = features.movedim(-3, -1)
        if self.rows is not None:
            grid = self.rows(grid, real).outputs
        memory = grid_memory(grid.reshape(*batch, *grid.shape[1:]))
        if real is not None:
            memory = memory._replace(mask=real.reshape(*batch, -1))
        return summarized(memory)

    def _normed(
        self,
        number: int,
        features: Float[Tensor, "B C h w"],
        real: Bool[Tensor, "B h w"] | None,
    ) -> Float[Tensor, "B C h w"]:
        """The features of a stage, normed. The sums are in float32 whatever the features are in;
        autocast would widen the features too, and narrow them again.
        """
        norm = self.norms[number]
        with torch.autocast(features.device.type, enabled=False):
            if isinstance(norm, BatchNorm):
                return norm(features, real)
            return norm(features.movedim(-3, -1)).movedim(-1, -3)


def _positions(images: Float[Tensor, "B C h w"]) -> Float[Tensor, "B 2 h w"]:
    """The row and the column of each pixel."""
    height, width = images.shape[-2:]
    row, column = (torch.arange(size, device=images.device) / _UNIT for size in (height, width))
    both = torch.stack(torch.meshgrid(row, column, indexing="ij"))
    return both.to(images.dtype).expand(len(images), -1, -1, -1)
