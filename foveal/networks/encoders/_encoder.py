"""The base class of encoders, which map inputs and their mask to a `Memory`.

Axes: *batch any leading shape, S positions, V width of a value.
"""

from abc import ABC, abstractmethod

from jaxtyping import Bool, Int
from torch import Tensor, nn

from ...attention import Attended, Memory


def without_padding(
    inputs: Int[Tensor, "*shape"], mask: Bool[Tensor, "*batch S"] | None
) -> Int[Tensor, "*shape"]:
    """Set padding to 0, because it may contain any number, even one outside the vocabulary.

    Inputs may have one more axis than their mask.
    """
    if mask is None:
        return inputs
    return inputs.masked_fill(~mask.reshape(*mask.shape, *(1,) * (inputs.ndim - mask.ndim)), 0)


class AbstractEncoder(nn.Module, ABC):
    """Maps inputs to a memory; values are 0 on padding, and the contents of padded inputs are ignored."""

    value_size: int  # width of a value
    summary_size: int  # width of the summary, or of the mean value if there is no summary

    @abstractmethod
    def forward(self, inputs: Tensor, mask: Bool[Tensor, "*batch S"] | None = None) -> Memory:
        """Encode a batch.

        Args:
            inputs: Inputs of a batch, for example token ids or images.
            mask: True on real inputs; None if all inputs are real.

        Returns:
            A memory with a value for each position.
        """

    def self_attentions(
        self, inputs: Tensor, mask: Bool[Tensor, "*batch S"] | None = None
    ) -> tuple[Attended, ...]:
        """Return the self-attentions of the encoder, with their weights; by default, there are none.

        Args:
            inputs: Inputs of a batch, as in `forward`.
            mask: True on real inputs; None if all inputs are real.

        Returns:
            The attentions from the input to the output, with weights `(*batch, S, S)`, or `(*batch, H, S, S)` of H
            heads.
        """
        return ()
