"""Frames encoder: each frame becomes a vector, and a stack processes the vectors.

    x_t = frame(input_t),   h = stack(x),   values = h,   summary = the top layer's state at the end

A frame can be a feature vector (of speech, or from the CNN of a video) or an image. The vector of an image
is the mean of its grid, or the maxima of its regions, which distinguish objects by their location.

Axes: *batch any leading shape, T frames.
Reference: Venugopalan et al. 2015 (video to text).
"""

from typing import final

from jaxtyping import Bool
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Memory
from .._bridges import summary_of
from ..recurrent._stacks import RecurrentStack
from ._encoder import AbstractEncoder
from ._regions import region_maxima


@final
class FramesEncoder(AbstractEncoder):
    """Encodes a sequence of frames.

    `frame` maps `(*batch, T, ...)` to vectors `(*batch, T, D)`. It can be a linear layer, or an image
    encoder, whose summary or region features are the vector of a frame.

    Args:
        frame: Computes a vector, or a grid of vectors, from a frame.
        stack: Processes the vectors; its input width is the total width of all regions of a grid.
        regions: Number of regions of a grid in each direction; the maximum of each feature is taken in
            each region. 1 takes the mean over the whole grid.

    Examples:
        >>> import torch
        >>> from foveal.networks import ImageEncoder, recurrent_stack
        >>> speech = FramesEncoder(nn.Linear(40, 8), recurrent_stack(8, 5))
        >>> speech(torch.zeros(2, 100, 40)).values.shape
        torch.Size([2, 100, 5])
        >>> video = FramesEncoder(ImageEncoder(3, sizes=(4, 8)), recurrent_stack(8, 5))
        >>> video(torch.zeros(2, 6, 3, 16, 16)).values.shape
        torch.Size([2, 6, 5])
    """

    def __init__(self, frame: nn.Module, stack: RecurrentStack, *, regions: int = 1) -> None:
        super().__init__()
        self.frame, self.stack, self.regions = frame, stack, regions
        self.value_size = self.summary_size = stack.output_size

    @override
    def forward(
        self,
        inputs: Tensor,
        mask: Bool[Tensor, "*batch T"] | Bool[Tensor, "*batch T h w"] | None = None,
    ) -> Memory:
        """Encode frames.

        The mask marks the real frames or, for images, the real pixels; a frame without a real pixel is
        padding.
        """
        frames, pixels = mask, ()
        if mask is not None and isinstance(self.frame, AbstractEncoder):
            if mask.ndim < inputs.ndim - 1:
                # Expand to pixels: batch normalization must also ignore padded frames.
                mask = mask[..., None, None].expand(*mask.shape, *inputs.shape[-2:])
            frames, pixels = mask.flatten(-2).any(-1), (mask,)
        elif mask is not None:
            missing = ~mask.reshape(*mask.shape, *[1] * (inputs.ndim - mask.ndim))
            inputs = inputs.masked_fill(missing, 0.0)
        vectors = self.frame(inputs, *pixels)
        if isinstance(vectors, Memory):
            several = self.regions > 1
            vectors = region_maxima(vectors, self.regions) if several else summary_of(vectors)
        outputs, state = self.stack(vectors, frames)
        return Memory(outputs, frames, state[-1].hidden)
