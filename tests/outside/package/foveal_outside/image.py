"""An image encoder: non-overlapping patches, each projected by one linear layer."""

from dataclasses import dataclass
from typing import Literal, final

from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pad

from foveal.attention import Memory, grid_memory
from foveal.models import AbstractImageEncoderSpec
from foveal.networks import AbstractEncoder
from foveal.specs import setting


class PatchEncoder(AbstractEncoder):
    """A convolution whose stride equals its kernel size."""

    def __init__(self, num_channels: int, side: int, size: int) -> None:
        super().__init__()
        self.side = side
        self.project = nn.Conv2d(num_channels, size, side, side)
        self.value_size = self.summary_size = size

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> Memory:
        """Encode images; a patch without a real pixel is padding."""
        batch = inputs.shape[:-3]
        images = inputs.reshape(-1, *inputs.shape[-3:])
        if mask is not None:
            images = images.masked_fill(~mask.reshape(-1, 1, *mask.shape[-2:]), 0.0)
        grid = self.project(self._filled(images)).tanh().movedim(-3, -1)
        memory = grid_memory(grid.reshape(*batch, *grid.shape[1:]))
        if mask is None:
            return memory._replace(summary=memory.values.mean(-2))
        pixels = mask.reshape(-1, 1, *mask.shape[-2:]).to(images.dtype)
        real = max_pool2d(self._filled(pixels), self.side).reshape(*batch, -1) > 0
        values = memory.values.masked_fill(~real.unsqueeze(-1), 0.0)
        mean = values.sum(-2) / real.sum(-1, keepdim=True).clamp(min=1)
        return memory._replace(values=values, mask=real, summary=mean)

    def _filled(self, images: Tensor) -> Tensor:
        below, right = (-size % self.side for size in images.shape[-2:])
        return pad(images, (0, right, 0, below))


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class PatchEncoderSpec(AbstractImageEncoderSpec):
    """Encode an image as patches."""

    kind: Literal["patches"] = "patches"
    num_channels: int = setting(1, "1 for gray, 3 for color", at_least=1)
    side: int = setting(4, "pixels of a patch in height and width", at_least=1)
    size: int = setting(8, "width of a patch's vector", at_least=1)

    @property
    def shrinking(self) -> tuple[int, int]:
        """Patches do not overlap."""
        return self.side, self.side

    @property
    def is_centered(self) -> bool:
        """A patch begins at the end of the previous patch."""
        return False

    def build(self) -> PatchEncoder:
        """Build the encoder."""
        return PatchEncoder(self.num_channels, self.side, self.size)
