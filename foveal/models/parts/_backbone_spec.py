"""A Hugging Face vision backbone as image encoder. Needs `foveal[hf]`.

    spec = backbone_spec("folder/of/resnet-18")          reads its config.json
    spec.build()                                         and, once, its model.safetensors

The spec holds the configuration as text. A bundle, which contains the weights, therefore needs neither the
folder nor the network. Weights are read only from safetensors, and no code from a model is run, because
both pickled weights and model code could execute untrusted code.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import torch
from typing_extensions import override

from ...errors import SpecError
from ...networks import HuggingFaceImageEncoder
from ...networks.encoders._hugging_face import backbone, backbone_config
from ...specs import check, setting
from ._image_spec import AbstractImageEncoderSpec

# The statistics of ImageNet, on which most backbones were trained.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SIDE = 224  # default image size in pixels, for a configuration without an image size


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class BackboneSpec(AbstractImageEncoderSpec):
    """Any vision model of `AutoBackbone`; `backbone_spec` fills in the settings from its folder."""

    kind: Literal["backbone"] = "backbone"
    config: str = setting(about="the config.json of the backbone, as text")
    weights: str | None = setting(
        None, "folder with its model.safetensors, or name on the hub; none: fresh weights"
    )
    num_channels: int = setting(3, "1 for gray, 3 for color", at_least=1)
    stride: int = setting(about="pixels from one cell of its last grid to the next", at_least=1)
    patches: bool = setting(
        False, "cells are adjacent patches, and not centered at regular distances"
    )
    mean: tuple[float, ...] = setting(_MEAN, "of the channels of the images it was trained on")
    std: tuple[float, ...] = setting(_STD, "their standard deviation", above=0)

    @override
    def build(self) -> HuggingFaceImageEncoder:
        """Build the encoder."""
        check(self)
        if not self.num_channels == len(self.mean) == len(self.std):
            raise SpecError(
                f"BackboneSpec: mean and std must have a number for each of {self.num_channels} "
                f"channels, got {len(self.mean)} and {len(self.std)}. Use one number per channel."
            )
        return HuggingFaceImageEncoder(
            backbone(self.config, self.weights), stride=self.stride, mean=self.mean, std=self.std
        )

    @property
    @override
    def shrinking(self) -> tuple[int, int]:
        return self.stride, self.stride

    @property
    @override
    def is_centered(self) -> bool:
        return not self.patches

    @override
    def built(self) -> "BackboneSpec":
        """Return the spec without the folder of the weights, which are saved with the task."""
        return replace(self, weights=None)


def backbone_spec(
    weights: str, *, mean: tuple[float, ...] = _MEAN, std: tuple[float, ...] = _STD
) -> BackboneSpec:
    """Build the spec of the backbone in a folder, or with a name on the hub.

    It reads the configuration and measures the stride of the last feature map on an empty image.

    Args:
        weights: Folder with config.json and model.safetensors, or name on the hub.
        mean: Channel means of the images that the backbone was trained on; defaults to ImageNet.
        std: Channel standard deviations of these images; defaults to ImageNet.

    Returns:
        A spec that contains the configuration and refers to the weights.
    """
    text = backbone_config(weights)
    config: dict[str, Any] = json.loads(text)
    num_channels, size = int(config.get("num_channels", 3)), _side(config)
    with torch.no_grad():
        empty = torch.zeros(1, num_channels, size, size)
        grid = backbone(text).eval()(empty).feature_maps[-1]
    return BackboneSpec(
        config=text,
        weights=weights,
        num_channels=num_channels,
        stride=size // grid.shape[-1],
        patches="patch_size" in config,
        mean=mean[:num_channels],
        std=std[:num_channels],
    )


def _side(config: dict[str, Any]) -> int:
    size = config.get("image_size") or _SIDE
    return int(size[0] if isinstance(size, list | tuple) else size)
