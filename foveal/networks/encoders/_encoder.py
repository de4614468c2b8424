"""What an encoder is: inputs and their mask become a `Memory`.

Axes: *batch any leading shape, S places, V width of a value.
"""

from abc import ABC, abstractmethod

from jaxtyping import Bool, Int
from torch import Tensor, nn

from ...attention import Memory


def without_padding(
    inputs: Int[Tensor, "*shape"], mask: Bool[Tensor, "*batch S"] | None
) -> Int[Tensor, "*shape"]:
    """The inputs with 0 on padding, which may contain any number, even one that is no token. Inputs may
    have one more axis than their mask.
    """
    if mask is None:
        return inputs
    return inputs.masked_fill(~mask.reshape(*mask.shape, *(1,) * (inputs.ndim - mask.ndim)), 0)


class AbstractEncoder(nn.Module, ABC):
    """Inputs in, memory out. Values are 0 on padding, and what the padding of the inputs holds
    changes nothing.
    """

    value_size: int  # width of a value
    summary_size: int  # width of the summary; of the mean value, where there is no other

    @abstractmethod
    def forward(self, inputs: Tensor, mask: Bool[Tensor, "*batch S"] | None = None) -> Memory:
        """Encode a batch; the mask is True on real inputs."""
