"""Image encoder: a small convolutional network computes an h x w grid of vectors.

    x[l] = relu( norm( convolution with a stride (x[l-1]) ) )
    x[l] = pool of s x s positions of relu( norm( convolution (x[l-1]) ) )    with a `downsampling` by pooling
    x[l] = x[l] + norm( W2 relu( norm( W1 x[l] ) ) )                  with `blocks`, after each stage
    v[i] = RNN along row i of x[L]                                    with `rows`

Each stage divides the height and the width by its stride. Layer normalization over the channels of one
position (Ba et al. 2016) keeps a position independent of distant positions and of the other images of a
batch. Batch normalization over all positions of a batch (Ioffe and Szegedy 2015) learns small objects on a
blank page faster. The first stage has no normalization: its inputs are pixels, which have one scale, and it
is by far the largest stage. A recurrent network along each row informs a cell about its neighbors (Deng et
al. 2017, section 3).

Residual blocks make the network deeper without changing the grid (He et al. 2016).

Convolutions use the channels-last format: twice as fast on a CPU, three times in bfloat16.

Axes: *batch any leading shape, B that shape flattened, C channels, h and w height and width.
References: Xu et al. 2015, section 3.1.1 (a grid of vectors for attention); LeCun et al. 1998; Liu et al.
2018 (coordinates as channels).
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d, relu
from typing_extensions import override

from ...attention import Memory, grid_memory
from ...errors import ShapeError, ValueRangeError
from .._bridges import summarized
from ..recurrent._stacks import RecurrentStack
from ._blocks import BlockStack, NormKind, build_norm, cleared, normed
from ._encoder import AbstractEncoder

Downsampling: TypeAlias = Literal["stride", "max_pool", "mean_pool"]
# Unit of rows and columns in pixels; it scales them to about the range of the pixel values.
_UNIT = 64.0


@final
class ImageEncoder(AbstractEncoder):
    """Encodes an image with one stage for each of `sizes`; the summary is the mean over the grid.

    A mask marks the real pixels, for images of several sizes in one batch. The encoding of an image does
    not depend on its padding.

    Args:
        num_channels: Channels of an image.
        sizes: Number of channels of each stage.
        strides: Strides of each stage in height and width; defaults to 2 and 2.
        rows: Stack that processes each row of the grid in order, if given.
        positions: Add the row and the column of each pixel as two more channels.
        norm: Normalization of all stages except the first: "layer", over the channels of a position, or
            "batch", over the positions of a batch.
        blocks: Number of blocks of two convolutions after each stage.
        residual: Each block adds its input to its output.
        kernel_size: Height and width of the convolutions of the stages, an odd number.
        downsampling: How a stage divides height and width: "stride", by a convolution with strides; "max_pool" or
            "mean_pool", by a pool after the convolution.

    Raises:
        ShapeError: If the number of strides is not the number of stages, or the input width of `rows` is not
            the number of channels of the last stage.
        ValueRangeError: If `kernel_size` is even.

    Examples:
        >>> encoder = ImageEncoder(1, sizes=(8, 16), strides=((2, 2), (4, 2)))
        >>> memory = encoder(torch.zeros(2, 1, 32, 20))
        >>> memory.values.shape, memory.layout
        (torch.Size([2, 20, 16]), Layout(kind='grid', rows=4, columns=5, pitch=None))
    """

    def __init__(
        self,
        num_channels: int,
        sizes: Sequence[int] = (32, 64, 128),
        *,
        strides: Sequence[tuple[int, int]] | None = None,
        rows: RecurrentStack | None = None,
        positions: bool = False,
        norm: NormKind = "layer",
        blocks: int = 0,
        residual: bool = True,
        kernel_size: int = 3,
        downsampling: Downsampling = "stride",
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
        if kernel_size % 2 == 0:
            raise ValueRangeError(
                f"ImageEncoder: kernel_size must be odd, so that a position has as many neighbors on both sides, got "
                f"{kernel_size}. Pass {kernel_size - 1} or {kernel_size + 1}."
            )
        self.positions = positions
        self.downsampling: Downsampling = downsampling
        inputs = [num_channels + 2 * positions, *sizes[:-1]]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(
                below,
                size,
                kernel_size=kernel_size,
                stride=stride if downsampling == "stride" else 1,
                padding=kernel_size // 2,
            )
            for below, size, stride in zip(inputs, sizes, self.strides, strict=True)
        )
        self.norms = nn.ModuleList(build_norm(norm, size) for size in sizes[1:])
        self.blocks = nn.ModuleList(
            BlockStack(size, blocks, norm=norm, residual=residual) for size in sizes
        )
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
            real = None  # images of one size: no padding to reset after each stage
        if self.positions:
            features = torch.cat([features, _positions(features)], -3)
        if real is not None:
            features = features.masked_fill(~real.unsqueeze(-3), 0.0)  # padding may hold anything
        features = features.contiguous(memory_format=torch.channels_last)
        for number, convolution in enumerate(self.convolutions):
            if self.downsampling == "stride":
                real = _smaller(real, self.strides[number])
            features = convolution(features)
            if number > 0:
                features = normed(self.norms[number - 1], features, real)
            features = cleared(relu(features), real)
            if self.downsampling != "stride":
                features = _pooled(self.downsampling, features, real, self.strides[number])
                real = _smaller(real, self.strides[number])
            features = self.blocks[number](features, real)
        grid = features.movedim(-3, -1)
        if self.rows is not None:
            grid = self.rows(grid, real).outputs
        memory = grid_memory(grid.reshape(*batch, *grid.shape[1:]))
        if real is not None:
            memory = memory._replace(mask=real.reshape(*batch, -1))
        return summarized(memory)


def _smaller(
    real: Bool[Tensor, "B h w"] | None, stride: tuple[int, int]
) -> Bool[Tensor, "B i j"] | None:
    """Return the mask after a stage.

    With strides, position i of the grid is centered on position stride * i of the grid below; with a pool, it starts
    there.
    """
    return None if real is None else real[..., :: stride[0], :: stride[1]]


def _pooled(
    kind: Downsampling,
    features: Float[Tensor, "B C h w"],
    real: Bool[Tensor, "B h w"] | None,
    window: tuple[int, int],
) -> Float[Tensor, "B C i j"]:
    """Pool windows of real positions. Positions that are not real are 0, which no maximum of features >= 0 sees."""
    if kind == "max_pool":
        return max_pool2d(features, window, ceil_mode=True)
    mean = avg_pool2d(features, window, ceil_mode=True)
    if real is None:
        return mean
    part = avg_pool2d(real.unsqueeze(-3).to(mean.dtype), window, ceil_mode=True)
    return mean / part.clamp(min=1 / (2 * window[0] * window[1]))


def _positions(images: Float[Tensor, "B C h w"]) -> Float[Tensor, "B 2 h w"]:
    """Return the row and the column of each pixel."""
    height, width = images.shape[-2:]
    row, column = (torch.arange(size, device=images.device) / _UNIT for size in (height, width))
    both = torch.stack(torch.meshgrid(row, column, indexing="ij"))
    return both.to(images.dtype).expand(len(images), -1, -1, -1)
