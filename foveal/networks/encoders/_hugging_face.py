"""Encoders from Hugging Face: any text model and any vision backbone. Needs `foveal[hf]`.

Axes: *batch any leading shape, T tokens, C channels, h and w height and width, V width of a value.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Memory, grid_memory
from ...errors import SpecError
from ...extras import required
from ...masking import mask_from_lengths
from .._bridges import summarized
from .._compaction import compaction, to_places
from ._encoder import AbstractEncoder

# Settings that would make transformers fetch weights or code from elsewhere.
_FOREIGN = frozenset(
    {"auto_map", "backbone", "backbone_config", "quantization_config", "use_pretrained_backbone"}
)
_MOST = 1_000_000  # largest number in a configuration: pixels, channels, layers


@final
class HuggingFaceTextEncoder(AbstractEncoder):
    """A text model such as BERT, or the encoder of an encoder-decoder.

    It maps tokens and a mask to the last hidden states; the summary is their mean. Real tokens are moved
    to the front, so positions count only real tokens and every mask pattern results in the same vectors.

    Args:
        model: A model of `AutoModel`; only the encoder of an encoder-decoder is used.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        config: Any = model.config
        is_pair = bool(config.is_encoder_decoder)
        self.model = model.get_encoder() if is_pair else model  # pyright: ignore[reportCallIssue]
        self.value_size = self.summary_size = int(config.hidden_size)

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> "HuggingFaceTextEncoder":
        """Load the weights of a model on the hub or in a directory (`AutoModel.from_pretrained`).

        Args:
            name: Name of a model on the hub, or directory with its files.
            **options: Options of `AutoModel.from_pretrained`.

        Returns:
            An encoder with the pretrained weights.
        """
        return cls(_transformers().AutoModel.from_pretrained(name, **options))

    @override
    def forward(
        self, inputs: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        size = inputs.shape[-1]
        real = torch.ones_like(inputs, dtype=torch.bool) if mask is None else mask
        moved = compaction(real.reshape(-1, size))
        tokens = inputs.masked_fill(~real, 0).reshape(-1, size).gather(1, moved.order)
        # A row without a real token reads one, because a softmax over nothing is undefined.
        read = mask_from_lengths(moved.lengths.clamp(min=1), size)
        output: Any = self.model(input_ids=tokens, attention_mask=read.long())
        values = to_places(output.last_hidden_state, moved).view(*inputs.shape, -1)
        values = values.masked_fill(~real.unsqueeze(-1), 0.0)
        return summarized(Memory(values, mask))


@final
class HuggingFaceImageEncoder(AbstractEncoder):
    """A vision backbone whose last feature map is the grid of an image; the summary is its mean.

    Args:
        backbone: A model of `AutoBackbone`.
        stride: Pixels between neighboring cells of that map; images are padded until every pixel is
            in a cell.
        mean: Channel means of the training images, with `std` their standard deviations. If given, the
            inputs are ink, from 0 for white to 1 for black, and the encoder normalizes them.
        std: See `mean`.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        *,
        stride: int = 1,
        mean: Sequence[float] | None = None,
        std: Sequence[float] = (1.0,),
    ) -> None:
        super().__init__()
        channels: Any = backbone.channels
        self.backbone, self.stride = backbone, stride
        self.is_of_ink = mean is not None
        for name, numbers in (("mean", mean or (0.0,)), ("std", std)):
            self.register_buffer(name, torch.tensor(numbers).view(-1, 1, 1), persistent=False)
        self.value_size = self.summary_size = int(channels[-1])

    @classmethod
    def from_pretrained(cls, name: str, **options: Any) -> "HuggingFaceImageEncoder":
        """Load the weights of a backbone on the hub or in a directory.

        Args:
            name: Name of a backbone on the hub, or directory with its files.
            **options: Options of the backbone's `from_pretrained`.

        Returns:
            An encoder with the pretrained weights, a stride of 1 and no normalization of images.
        """
        config = _transformers().AutoConfig.from_pretrained(name)
        return cls(_backbone_class(config).from_pretrained(name, config=config, **options))

    @override
    def forward(
        self, inputs: Float[Tensor, "*batch C h w"], mask: Bool[Tensor, "*batch h w"] | None = None
    ) -> Memory:
        """Encode images; masked pixels are set to 0, and cells with only masked pixels are padding.

        Args:
            inputs: Images, from 0 for white to 1 for black if the encoder has a `mean`.
            mask: True on real pixels; None if all pixels are real.

        Returns:
            A memory with a value for each cell of the grid.
        """
        images = ((1 - inputs) - self.mean) / self.std if self.is_of_ink else inputs
        images = images if mask is None else images.masked_fill(~mask.unsqueeze(-3), 0.0)
        below, right = (-size % self.stride for size in images.shape[-2:])
        images = nn.functional.pad(images, (0, right, 0, below))
        mask = None if mask is None else nn.functional.pad(mask, (0, right, 0, below))
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
        return summarized(memory)


def backbone_config(name: str) -> str:
    """Return the configuration of a backbone in a folder, or with a name on the hub, as JSON.

    Args:
        name: Folder of the backbone, or its name on the hub.

    Returns:
        The contents of config.json.

    Raises:
        SpecError: If the configuration cannot be read.
    """
    try:
        found: Any = _transformers().AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise SpecError(
            f"backbone_config: {name} cannot be read: {str(error).splitlines()[0]} "
            f"Name a folder with config.json and model.safetensors."
        ) from None
    return json.dumps(found.to_dict(), sort_keys=True)


def backbone(config: str, weights: str | None = None) -> nn.Module:
    """Build a vision model of `AutoBackbone` from its configuration.

    Weights are read only from safetensors, and no code from a model is run.

    Args:
        config: Configuration as JSON, from `backbone_config`.
        weights: Folder or name on the hub of the weights; None: new weights.

    Returns:
        The model.

    Raises:
        SpecError: If the configuration is not of a vision backbone, or the weights cannot be read.
    """
    known = _configured(config)
    if weights is None:
        return _backbone_class(known)(known)
    try:
        return _backbone_class(known).from_pretrained(weights, config=known, use_safetensors=True)
    except (OSError, ValueError) as error:
        raise SpecError(
            f"backbone: the weights of {weights} cannot be read: {str(error).splitlines()[0]} "
            f"Name a folder with config.json and model.safetensors."
        ) from None


def _backbone_class(config: Any) -> Any:
    """Return the model class of a configuration; `AutoBackbone.from_pretrained` does not read directories."""
    try:
        return _transformers().MODEL_FOR_BACKBONE_MAPPING[type(config)]
    except KeyError:
        raise SpecError(
            f"backbone: {config.model_type} is not a vision backbone. Use a model with an AutoBackbone."
        ) from None


def _configured(text: str) -> Any:
    """Parse the configuration, whose model type must be part of the package."""
    try:
        data: dict[str, Any] = dict(json.loads(text))
        kind = str(data.pop("model_type"))
    except (ValueError, TypeError, KeyError):
        raise SpecError(
            "backbone: the configuration must be JSON with a model_type, as config.json is, got "
            "something else. Make it with backbone_config."
        ) from None
    foreign = "model_type" if kind == "timm_backbone" else _foreign(data)
    if foreign:
        raise SpecError(
            f"backbone: the {foreign} of this {kind} runs code, or loads weights, that are not of the "
            f"transformers package, which is refused. Use a model that transformers has itself."
        )
    if (number := _largest(data)) > _MOST:
        raise SpecError(
            f"backbone: the configuration has the number {str(number)[:40]}, expected at most {_MOST:,}. "
            f"Make it with backbone_config."
        )
    try:
        return _transformers().AutoConfig.for_model(kind, **data)
    except ValueError as error:
        raise SpecError(
            f"backbone: {str(error).splitlines()[0]} Use a model with an AutoBackbone."
        ) from None


def _foreign(data: Mapping[str, Any]) -> str:
    """Return the first setting that names external code or weights, or an empty string.

    An implementation with a slash is the name of a kernel on the hub.
    """
    for name, value in data.items():
        is_kernel = "implementation" in name and "/" in json.dumps(value)
        if value and (name in _FOREIGN or is_kernel):
            return name
    return ""


def _largest(data: Any) -> int | float:
    """Return the number in JSON data with the largest absolute value."""
    if isinstance(data, dict | list):
        return max(map(_largest, data.values() if isinstance(data, dict) else data), default=0)
    return abs(data) if isinstance(data, int | float) else 0


def _transformers() -> Any:
    return required("hf", "transformers", needed_by="An encoder from Hugging Face")
