"""Self-attention: every place reads the others, and keeps what it read beside what it is.

    c_i = attention( h_i, memory of h ) over x,    values_i = [x_i; c_i]

    h = x                       the places are scored by what they are
    h = stack(x)                the places are scored by their states in a recurrent network, and
                                what is read are the places themselves (Kim et al. 2017, section 4.1)

With syntactic attention c_i is the expected head of word i.

Axes: *batch any leading shape, S places, V width of a value.
"""

from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor
from typing_extensions import override

from ...attention import Attended, Attention, Memory
from ...errors import ShapeError
from .._bridges import summarized
from ..recurrent._stacks import RecurrentStack
from ._encoder import AbstractEncoder


@final
class SelfAttentiveEncoder(AbstractEncoder):
    """Any encoder whose values then attend to each other; the summary stays what it was.

    The attention's queries and keys have the width of the stack's outputs, or of a value where there
    is no stack; what it reads has the width of a value.

    >>> from torch import nn
    >>> from foveal.attention import syntactic_attention
    >>> from foveal.networks import WordEncoder
    >>> words = WordEncoder(nn.Embedding(9, 4))
    >>> encoder = SelfAttentiveEncoder(words, syntactic_attention(4, 4, hidden_size=8))
    >>> memory = encoder(torch.tensor([[1, 2, 3]]))
    >>> memory.values.shape, encoder.attend(torch.tensor([[1, 2, 3]])).weights.shape
    (torch.Size([1, 3, 8]), torch.Size([1, 3, 3]))
    """

    def __init__(
        self, encoder: AbstractEncoder, attention: Attention, stack: RecurrentStack | None = None
    ) -> None:
        super().__init__()
        if stack is not None and stack.input_size != encoder.value_size:
            raise ShapeError(
                f"SelfAttentiveEncoder: the stack must have input_size {encoder.value_size}, the "
                f"width of the encoder's values, got {stack.input_size}. Make them equal."
            )
        self.encoder, self.attention, self.stack = encoder, attention, stack
        self.value_size = 2 * encoder.value_size
        self.summary_size = encoder.summary_size

    @override
    def forward(self, inputs: Tensor, mask: Bool[Tensor, "*batch S"] | None = None) -> Memory:
        memory = summarized(self.encoder(inputs, mask))
        context = self._attend(memory).context
        values = torch.cat([memory.values, context], -1)
        return memory._replace(values=values).cleared("SelfAttentiveEncoder")

    def attend(self, inputs: Tensor, mask: Bool[Tensor, "*batch S"] | None = None) -> Attended:
        """What every place reads of the others, and the distribution over trees that says so."""
        return self._attend(self.encoder(inputs, mask))

    def _attend(self, memory: Memory) -> Attended:
        states = memory.values
        if self.stack is not None:
            states = self.stack(states, memory.mask).outputs
        remembered = self.attention.remember(memory._replace(values=states))
        return self.attention(states, remembered._replace(values=memory.values))
