"""Input feeding: the next step reads what the last one attended to.

    s_t = RNN( s_{t-1}, [y_{t-1}; bridge; v_{t-1}] )
    v_t = tanh( U [c_t; s_t] ),   c_t = attention(s_t, memory)

so that a decision to attend can take those before it into account. Each step needs the attention
of the one before, and teacher forcing is a loop over time.

Reference: Luong et al. 2015, section 3.3.

Axes: *batch any leading shape, A width of the attentional vector v.
"""

from typing import final

import torch
from jaxtyping import Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Memory
from ._bridges import AbstractBridge, summarised
from ._decoders import AbstractDecoder, Attends, DecoderState, Step
from ._output import TokenOutput
from ._stacks import RecurrentStack


@final
class InputFeedingDecoder(AbstractDecoder):
    """A decoder that attends after each step and reads the attentional vector at the next; the
    stack's input has room for it: embedding + bridge + `vector_size`.

    >>> from sightline.attention import softmax_attention
    >>> from sightline.networks import InitialState, recurrent_stack
    >>> stack = recurrent_stack(4 + 5, 5)
    >>> decoder = InputFeedingDecoder(
    ...     embedding=nn.Embedding(9, 4), stack=stack, bridge=InitialState(6, stack),
    ...     attention=softmax_attention(5, 6), value_size=6, vector_size=5,
    ... )
    >>> unrolled = decoder.unroll(torch.tensor([[1, 2, 3]]), Memory(torch.randn(1, 7, 6)))
    >>> unrolled.log_probs.shape, unrolled.weights.shape
    (torch.Size([1, 3, 9]), torch.Size([1, 3, 7]))
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        bridge: AbstractBridge,
        attention: Attends,
        value_size: int,
        vector_size: int,
        tied: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            embedding=embedding, stack=stack, bridge=bridge, fed_size=vector_size, dropout=dropout
        )
        self.attention, self.vector_size = attention, vector_size
        self.combine = nn.Linear(value_size + stack.output_size, vector_size, bias=False)
        self.output = TokenOutput(vector_size, embedding, tied=tied)

    @override
    def remember(self, memory: Memory) -> Memory:
        return self.attention.remember(summarised(memory))

    @override
    def start(self, memory: Memory) -> DecoderState:
        layers = super().start(memory).layers
        hidden = layers[0].hidden
        return DecoderState(layers, hidden.new_zeros(*hidden.shape[:-1], self.vector_size))

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        assert state.fed is not None
        inputs = self._input(token, memory, state.fed)
        hidden, layers = self.stack.step(inputs, state.layers)
        attended = self.attention(hidden.unsqueeze(-2), memory)
        context = attended.context.squeeze(-2)
        vector = self.dropout(torch.tanh(self.combine(torch.cat([context, hidden], -1))))
        log_probs = self.output(vector, self.embedding)
        return Step(DecoderState(layers, vector), log_probs, attended)
