"""Images: a small convolutional network gives an h x w grid of vectors.

    x[l] = relu( norm( conv3x3, stride 2 (x[l-1]) ) )

Each stage halves the height and the width. The norm is over the channels of one place (Ba et al.
2016), so that no place depends on what lies far away or on the other images of a batch.

Axes: *batch any leading shape, C channels, h and w height and width.
References: Xu et al. 2015, section 3.1.1 (a grid of vectors for attention); LeCun et al. 1998.
"""

from collections.abc import Sequence
from typing import final

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import relu
from typing_extensions import override

from ..attention import Memory, grid_memory
from ._bridges import summarised
from ._encoders import AbstractEncoder


@final
class ImageEncoder(AbstractEncoder):
    """One stage for each of `sizes`, its number of channels; the summary is the mean over the grid.

    A mask says which pixels are real, for images of several sizes in one batch: an image encodes
    the same, whatever surrounds it.

    >>> import torch
    >>> encoder = ImageEncoder(1, sizes=(8, 16))
    >>> memory = encoder(torch.zeros(2, 1, 28, 20))
    >>> memory.values.shape, memory.layout
    (torch.Size([2, 35, 16]), Layout(kind='grid', rows=7, columns=5))
    """

    def __init__(self, num_channels: int, sizes: Sequence[int] = (32, 64, 128)) -> None:
        super().__init__()
        inputs = [num_channels, *sizes[:-1]]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(below, size, kernel_size=3, stride=2, padding=1)
            for below, size in zip(inputs, sizes, strict=True)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes)
        self.value_size = self.summary_size = sizes[-1]

    @override
    def forward(
        self, inputs: Float[Tensor, "*batch C h w"], mask: Bool[Tensor, "*batch h w"] | None = None
    ) -> Memory:
        features = inputs.reshape(-1, *inputs.shape[-3:])
        real = None if mask is None else mask.reshape(-1, *mask.shape[-2:])
        features = _without_padding(features, real)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            features = convolution(features)
            features = relu(norm(features.movedim(-3, -1)).movedim(-1, -3))
            # Place i of the grid is centred on place 2 i of the one below.
            real = None if real is None else real[..., ::2, ::2]
            features = _without_padding(features, real)
        grid = features.movedim(-3, -1)
        memory = grid_memory(grid.reshape(*inputs.shape[:-3], *grid.shape[1:]))
        if real is not None:
            memory = memory._replace(mask=real.reshape(*inputs.shape[:-3], -1))
        return summarised(memory)


def _without_padding(features: Tensor, real: Tensor | None) -> Tensor:
    return features if real is None else features.masked_fill(~real.unsqueeze(-3), 0.0)
