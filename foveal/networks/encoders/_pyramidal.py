"""Pyramidal encoder: each layer reads neighboring outputs of the layer below, joined, so sequences get shorter.

    x[l, i] = layer_l( [x[l-1, k i]; ...; x[l-1, k i + k - 1]] ),   k = factor of layer l

Speech has a hundred frames per second and a few tokens. After factors 2, 2 and 2, attention reads an eighth of the
positions, and each position sees eight frames at once.

Axes: *batch any leading shape, T frames, S positions after the top layer, D width of a frame, V of a value.
Reference: Chan et al. 2016 (listen, attend and spell).
"""

from collections.abc import Sequence
from typing import final

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from ...attention import Memory
from ...errors import ShapeError
from .._dropout import Dropout
from ..recurrent._stacks import RecurrentStack
from ._encoder import AbstractEncoder


@final
class PyramidalEncoder(AbstractEncoder):
    """Encodes a sequence of vectors as a shorter sequence.

    Args:
        layers: Stacks, lowest first; each reads `factor` joined outputs of the stack below.
        factors: Number of neighboring vectors that each stack reads as one.
        dropout: Dropout probability of the inputs of each stack.

    Raises:
        ShapeError: If the numbers of layers and factors differ, or a layer does not have the width of the joined vectors.

    Examples:
        >>> import torch
        >>> from foveal.networks import recurrent_stack
        >>> layers = [recurrent_stack(2 * 40, 5, bidirectional=True), recurrent_stack(2 * 10, 5, bidirectional=True)]
        >>> PyramidalEncoder(layers, factors=(2, 2))(torch.zeros(3, 101, 40)).values.shape
        torch.Size([3, 26, 10])
    """

    def __init__(
        self, layers: Sequence[RecurrentStack], *, factors: Sequence[int], dropout: float = 0.0
    ) -> None:
        super().__init__()
        if len(layers) != len(factors) or not layers or min(factors) < 1:
            raise ShapeError(
                f"PyramidalEncoder: expected a positive factor for each layer, got {len(layers)} layers and factors "
                f"{tuple(factors)}. Pass one factor per layer."
            )
        for number in range(1, len(layers)):
            expected = layers[number - 1].output_size * factors[number]
            if layers[number].input_size != expected:
                raise ShapeError(
                    f"PyramidalEncoder: layer {number} must have input_size {expected}, got "
                    f"{layers[number].input_size}. It reads {factors[number]} outputs of the layer below."
                )
        self.layers, self.factors = nn.ModuleList(layers), tuple(factors)
        self.dropout = Dropout(dropout)
        self.value_size = self.summary_size = layers[-1].output_size

    @override
    def forward(
        self, inputs: Float[Tensor, "*batch T D"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> Memory:
        """Encode frames; a position is real if one of its frames is."""
        values, summary = inputs, None
        if mask is not None:
            values = values.masked_fill(~mask.unsqueeze(-1), 0.0)
        for layer, factor in zip(self.layers, self.factors, strict=True):
            values, mask = _joined(values, mask, factor)
            values, state = layer(self.dropout(values), mask)
            summary = state[-1].hidden
        return Memory(values, mask, summary)


def _joined(
    values: Float[Tensor, "*batch T D"], mask: Bool[Tensor, "*batch T"] | None, factor: int
) -> tuple[Float[Tensor, "*batch S V"], Bool[Tensor, "*batch S"] | None]:
    """Join neighboring vectors; the last of them may be padded with 0."""
    missing = -values.shape[-2] % factor
    values = pad(values, (0, 0, 0, missing)).unflatten(-2, (-1, factor)).flatten(-2)
    if mask is not None:
        mask = pad(mask, (0, missing)).unflatten(-1, (-1, factor)).any(-1)
    return values, mask
