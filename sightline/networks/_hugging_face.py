"""Encoders from Hugging Face: any text model and any vision backbone. Needs `sightline[hf]`.

Axes: *batch any leading shape, T tokens, C channels, h and w height and width, V width of a value.
"""

from importlib import import_module
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Memory, grid_memory
from ..errors import MissingPackageError
from ..masking import mask_from_lengths
from ._bridges import summarised
from ._compaction import compaction, to_places
from ._encoders import AbstractEncoder


@final
class HuggingFaceTextEncoder(AbstractEncoder):
    """A text model: BERT and its kin, or the encoder of an encoder-decoder. Tokens and mask in,
    the last hidden states out; the summary is their mean.

    Real tokens are moved to the front before the model reads them, so that positions count real
    tokens only and every mask pattern gives the same vectors.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        config: Any = model.config
        is_pair = bool(config.is_encoder_decoder)
        self.model = model.get_encoder() if is_pair else model  # pyright: ignore[reportCallIssue]
        self.value_size = self.summary_size = int(config.hidden_size)

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> "HuggingFaceTextEncoder":
        """The weights of a model on the hub or in a directory (`AutoModel.from_pretrained`)."""
        return cls(_transformers().AutoModel.from_pretrained(name, **options))

    @override
    def forward(
        self, inputs: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        size = inputs.shape[-1]
        real = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
        moved = compaction(real.reshape(-1, size))
        tokens = inputs.masked_fill(~real, 0).reshape(-1, size).gather(1, moved.order)
        # A row without a real token reads one, or its softmax would be over nothing.
        read = mask_from_lengths(moved.lengths.clamp(min=1), size)
        output: Any = self.model(input_ids=tokens, attention_mask=read.long())
        values = to_places(output.last_hidden_state, moved).view(*inputs.shape, -1)
        values = values.masked_fill(~real.unsqueeze(-1), 0.0)
        return summarised(Memory(values, mask))


@final
class HuggingFaceImageEncoder(AbstractEncoder):
    """A vision backbone: images in, its last feature map out as a grid; the summary is the mean."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        channels: Any = backbone.channels
        self.backbone = backbone
        self.value_size = self.summary_size = int(channels[-1])

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> "HuggingFaceImageEncoder":
        """The weights of a backbone on the hub or in a directory (`AutoBackbone.from_pretrained`)."""
        return cls(_transformers().AutoBackbone.from_pretrained(name, **options))

    @override
    def forward(
        self, inputs: Float[Tensor, "*batch C h w"], mask: Bool[Tensor, "*batch h w"] | None = None
    ) -> Memory:
        """Encode images; pixels that the mask leaves out are 0, and cells that hold only such
        pixels are padding.
        """
        images = inputs if mask is None else inputs.masked_fill(~mask.unsqueeze(-3), 0.0)
        output: Any = self.backbone(images.reshape(-1, *images.shape[-3:]))
        grid = output.feature_maps[-1].movedim(-3, -1)
        memory = grid_memory(grid.reshape(*inputs.shape[:-3], *grid.shape[1:]))
        if mask is not None:
            cells = nn.functional.adaptive_max_pool2d(
                mask.reshape(-1, 1, *mask.shape[-2:]).to(grid.dtype), grid.shape[1:3]
            )
            real = cells.reshape(*inputs.shape[:-3], -1) > 0
            values = memory.values.masked_fill(~real.unsqueeze(-1), 0.0)
            memory = memory._replace(values=values, mask=real)
        return summarised(memory)


def _transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError:
        raise MissingPackageError(
            "HuggingFaceTextEncoder and HuggingFaceImageEncoder: the package transformers is not "
            "installed. Install it with: pip install 'sightline[hf]'"
        ) from None
