"""Self-attention: every position attends to the others and appends the result to its value.

    c_i = attention( h_i, memory of h ) over x,    values_i = [x_i; c_i]

    h = x                       scores depend on the values of the positions
    h = stack(x)                scores depend on the states of a recurrent network, while the attention
                                reads the values (Kim et al. 2017, section 4.1)

With syntactic attention c_i is the expected head of word i. If the heads are given, c_i is the head itself, and a
learned vector for the root ("hard parent", Kim et al. 2017, table 4): a parser has found the heads, and training does
not change them.

Axes: *batch any leading shape, S positions, V width of a value.
"""

from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import one_hot
from typing_extensions import override

from ...attention import Attended, Attention, Memory
from ...attention._readers import SelectedHeadReader
from ...distributions import Categorical
from ...errors import ShapeError, ValueRangeError
from .._bridges import summarized
from ..recurrent._stacks import RecurrentStack
from ._encoder import AbstractEncoder


@final
class SelfAttentiveEncoder(AbstractEncoder):
    """Adds self-attention to the values of any encoder; the summary does not change.

    Queries and keys of the attention have the width of the stack's outputs, or of a value if there is no
    stack; the values that it reads have the width of a value.

    Args:
        encoder: Computes the values to which self-attention is added; the output is twice as wide.
        attention: Attention of every position to the others.
        stack: Recurrent network over the values whose outputs score the attention; defaults to the values
            themselves.

    Raises:
        ShapeError: If the input width of the stack is not the width of the encoder's values.

    Examples:
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
        """Return the attention of every position to the others.

        Args:
            inputs: Inputs of the encoder.
            mask: True on real positions; None if all positions are real.

        Returns:
            The context and the weights of each position, and the distribution, such as a tree.
        """
        return self._attend(self.encoder(inputs, mask))

    @override
    def self_attentions(
        self, inputs: Tensor, mask: Bool[Tensor, "*batch S"] | None = None
    ) -> tuple[Attended, ...]:
        return *self.encoder.self_attentions(inputs, mask), self.attend(inputs, mask)

    def _attend(self, memory: Memory) -> Attended:
        states = memory.values
        if self.stack is not None:
            states = self.stack(states, memory.mask).outputs
        remembered = self.attention.remember(memory._replace(values=states))
        return self.attention(states, remembered._replace(values=memory.values))


@final
class GivenHeadsEncoder(AbstractEncoder):
    """Adds the head of each word to the values of any encoder; the summary does not change.

    The inputs are pairs `(*batch, S, 2)`: the id of a word, and the position of its head, counted from 1; 0 is the root.

    Args:
        encoder: Computes the values of the words; the output is twice as wide.

    Examples:
        >>> from torch import nn
        >>> from foveal.networks import WordEncoder
        >>> encoder = GivenHeadsEncoder(WordEncoder(nn.Embedding(9, 4)))
        >>> words, heads = torch.tensor([[5, 6, 7]]), torch.tensor([[2, 0, 2]])
        >>> encoder(torch.stack([words, heads], -1)).values.shape
        torch.Size([1, 3, 8])
    """

    def __init__(self, encoder: AbstractEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.reader = SelectedHeadReader(encoder.value_size)
        self.value_size = 2 * encoder.value_size
        self.summary_size = encoder.summary_size

    @override
    def forward(
        self, inputs: Int[Tensor, "..."], mask: Bool[Tensor, "*batch S"] | None = None
    ) -> Memory:
        words, heads = _split(inputs, mask)
        memory = summarized(self.encoder(words, mask))
        context = self._attend(memory, heads).context
        values = torch.cat([memory.values, context], -1)
        return memory._replace(values=values).cleared("GivenHeadsEncoder")

    @override
    def self_attentions(
        self, inputs: Int[Tensor, "..."], mask: Bool[Tensor, "*batch S"] | None = None
    ) -> tuple[Attended, ...]:
        words, heads = _split(inputs, mask)
        own = self.encoder.self_attentions(words, mask)
        return *own, self._attend(self.encoder(words, mask), heads)

    def _attend(self, memory: Memory, heads: Int[Tensor, "*batch S"]) -> Attended:
        is_head = one_hot(heads, memory.values.shape[-2] + 1).bool()
        scores = torch.zeros_like(is_head, dtype=memory.values.dtype)
        given = Categorical(scores.masked_fill(~is_head, -torch.inf))
        context, weights = self.reader(given, memory.values)
        return Attended(context, weights, given)


def _split(
    inputs: Tensor, mask: Tensor | None
) -> tuple[Int[Tensor, "*batch S"], Int[Tensor, "*batch S"]]:
    """Return the words and their heads; the head of padding is the root."""
    if inputs.ndim < 2 or inputs.shape[-1] != 2:
        raise ShapeError(
            f"GivenHeadsEncoder: expected a word and its head at each position, (..., S, 2), got shape "
            f"{tuple(inputs.shape)}. Only pair classification passes heads; choose another encoder elsewhere."
        )
    words, heads = inputs.unbind(-1)
    heads = heads if mask is None else heads.masked_fill(~mask, 0)
    outside = heads[(heads < 0) | (heads > heads.shape[-1])]
    if len(outside):
        raise ValueRangeError(
            f"GivenHeadsEncoder: heads must be 0 (root) to {heads.shape[-1]}, got {outside[0].item()}. "
            f"Count the words of each text from 1."
        )
    return words, heads
