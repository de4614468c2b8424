"""Input feeding: the next step reads the attentional vector of the previous step.

    s_t = RNN( s_{t-1}, [y_{t-1}; bridge; v_{t-1}] )
    v_t = tanh( U [c_t; s_t] ),   c_t = attention(s_t, memory)

The attention can then take earlier attention into account. Each step needs the attention of the previous
step, so teacher forcing is a loop over time.

Reference: Luong et al. 2015, section 3.3.

Axes: *batch any leading shape, A width of the attentional vector v.
"""

from typing import Unpack, final

import torch
from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ._decoder import AbstractAttentionDecoder, Attends
from ._fed_steps import FedSteps, carried, real_items, shared
from ._history import history_after, memory_at
from ._steps import DecoderState, TeacherForced
from ._vector_decoder import VectorDecoderParts


@final
class InputFeedingDecoder(AbstractAttentionDecoder):
    """A decoder that attends after each step and reads the attentional vector at the next step.

    The width of the stack's input is embedding + bridge + `vector_size`.

    Args:
        attention: Attention whose queries are the outputs of the stack.
        value_size: Width of the values of the memory.
        vector_size: Width of the attentional vector v, which is also an input of the next step.
        **parts: `embedding`, `stack` and `bridge`, and optionally `tie_embeddings`, to use the embedding as the
            weights of the output layer, and `dropout`, a probability.

    Examples:
        >>> from torch import nn
        >>> from foveal.attention import softmax_attention
        >>> from foveal.networks import InitialStateBridge, recurrent_stack
        >>> stack = recurrent_stack(4 + 5, 5)
        >>> decoder = InputFeedingDecoder(
        ...     embedding=nn.Embedding(9, 4), stack=stack, bridge=InitialStateBridge(6, stack),
        ...     attention=softmax_attention(5, 6), value_size=6, vector_size=5,
        ... )
        >>> unrolled = decoder.unroll(torch.tensor([[1, 2, 3]]), Memory(torch.randn(1, 7, 6)))
        >>> unrolled.log_probs.shape, unrolled.weights.shape
        (torch.Size([1, 3, 9]), torch.Size([1, 3, 7]))
    """

    def __init__(
        self,
        *,
        attention: Attends,
        value_size: int,
        vector_size: int,
        **parts: Unpack[VectorDecoderParts],
    ) -> None:
        super().__init__(
            attention=attention,
            value_size=value_size,
            vector_size=vector_size,
            fed_size=vector_size,
            **parts,
        )
        self.vector_size = vector_size

    @override
    def start(self, memory: Memory) -> DecoderState:
        state = super().start(memory)
        hidden = state.layers[0].hidden
        return state._replace(own=hidden.new_zeros(*hidden.shape[:-1], self.vector_size))

    @override
    def fed(self, state: DecoderState) -> tuple[Tensor, ...]:
        return (state.own,)

    @override
    def own(self, vector: Tensor) -> Tensor:
        return vector

    @override
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        state = self.start(memory) if state is None else state
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        steps = FedSteps(self.stack, self._input(tokens, memory))
        memory = shared(memory)
        vectors, attended = [], []
        for number, real in enumerate(real_items(mask, tokens.shape[-1])):
            hidden, layers = steps.step(number, state.own, state.layers)
            read, reading = self.read(hidden.unsqueeze(-2), memory_at(state, memory))
            vector = self.dropout(read).squeeze(-2)
            history = history_after(self.attention, state, reading.weights.squeeze(-2))
            after = DecoderState(layers, vector, history)
            state = after if real is None else carried(real, after, state)
            vectors.append(vector)
            attended.append(reading)
        return TeacherForced(torch.stack(vectors, -2), tuple(attended), state)
