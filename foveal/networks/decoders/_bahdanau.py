"""Attention before the step: the previous state is the query, and the step reads the context.

    c_t = attention(s_{t-1}, memory)
    s_t = RNN( s_{t-1}, [y_{t-1}; bridge; c_t] )

    linear output   v_t = s_t
    deep output     v_t = maxout( U s_t + V y_{t-1} + C c_t + b )

The context decides the next state, so teacher forcing is a loop over time. Luong's decoders (`AttentionDecoder`
and `InputFeedingDecoder`) attend after the step, with the new state.

References: Bahdanau et al. 2015, section 3.1 and appendix A.2.2, whose deep output writes s_{t-1} where its
probability of the next token depends on s_t; here it is s_t. Deep output: Pascanu et al. 2014. Maxout:
Goodfellow et al. 2013.

Axes: *batch any leading shape, Q queries, E width of an embedding, H of the stack's output, C of a context, A of
the vector v.
"""

from typing import Unpack, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Attended, Memory
from ...attention._hierarchical import HierarchicalAttended
from ...batch_invariant import Linear
from .._bridges import summarized
from ._decoder import Attends
from ._fed_steps import FedSteps, carried, real_items, shared
from ._history import first_history, history_after, memory_at
from ._steps import DecoderState, Reading, Step, TeacherForced
from ._vector_decoder import AbstractRecurrentVectorDecoder, VectorDecoderParts


@final
class BahdanauDecoder(AbstractRecurrentVectorDecoder):
    """A decoder that attends with its previous state and reads the context in the step.

    The width of the stack's input is embedding + bridge + `value_size`.

    Args:
        attention: Attention whose queries are states of the top layer.
        value_size: Width of a context.
        deep_size: Width of the vector before the output layer, computed from state, token and context (deep
            output). None uses the state itself (linear output).
        **parts: The parts of every decoder: embedding, stack, bridge, tie_embeddings, dropout.

    Examples:
        >>> from torch import nn
        >>> from foveal.attention import softmax_attention
        >>> from foveal.networks import InitialStateBridge, recurrent_stack
        >>> stack = recurrent_stack(4 + 6, 5)
        >>> decoder = BahdanauDecoder(
        ...     embedding=nn.Embedding(9, 4), stack=stack, bridge=InitialStateBridge(6, stack),
        ...     attention=softmax_attention(5, 6), value_size=6,
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
        deep_size: int | None = None,
        **parts: Unpack[VectorDecoderParts],
    ) -> None:
        hidden_size, embedding_size = parts["stack"].output_size, parts["embedding"].embedding_dim
        super().__init__(
            vector_size=hidden_size if deep_size is None else deep_size,
            fed_size=value_size,
            **parts,
        )
        self.attention = attention
        read_size = hidden_size + embedding_size + value_size
        self.deep = None if deep_size is None else Linear(read_size, 2 * deep_size)

    @override
    def remember(self, memory: Memory) -> Memory:
        return self.attention.remember(summarized(memory))

    @override
    def start(self, memory: Memory) -> DecoderState:
        return super().start(memory)._replace(history=first_history(self.attention, memory))

    @override
    def fed(self, state: DecoderState) -> tuple[Tensor, ...]:
        """Return the context, which is part of the state only within a step: see `with_context`."""
        return (state.own,)

    def with_context(self, state: DecoderState, context: Float[Tensor, "*batch C"]) -> DecoderState:
        """Return a state from which `advance` can take a step that reads this context.

        Args:
            state: State before the step.
            context: Context that the step reads.

        Returns:
            The same layers, with the context.
        """
        return state._replace(own=context)

    def attend(self, state: DecoderState, memory: Memory) -> Attended | HierarchicalAttended:
        """Attend with the top layer of a state as the only query.

        Args:
            state: State before the step.
            memory: Encoded input, from `remember`.

        Returns:
            The context and the weights, with one query.
        """
        query = state.layers[-1].hidden.unsqueeze(-2)
        return self.attention(query, memory_at(state, memory))

    def vectors(
        self,
        hidden: Float[Tensor, "*batch H"],
        embedded: Float[Tensor, "*batch E"],
        context: Float[Tensor, "*batch C"],
    ) -> Float[Tensor, "*batch A"]:
        """Compute the vector v of each step, before dropout.

        Args:
            hidden: Outputs of the stack.
            embedded: Vectors of the tokens that the steps read.
            context: Contexts that the steps read.

        Returns:
            The vectors, from which the output layer predicts the next token.
        """
        if self.deep is None:
            return hidden
        units = self.deep(torch.cat([hidden, embedded, context], -1))
        return units.unflatten(-1, (-1, 2)).amax(-1)

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        attended = self.attend(state, memory)
        context, embedded = attended.context.squeeze(-2), self._embedded(token)
        hidden, layers = self.stack.step(self._joined(embedded, memory, context), state.layers)
        vectors = self.dropout(self.vectors(hidden, embedded, context)).unsqueeze(-2)
        log_probs = self.log_probs(vectors, (attended,), memory).squeeze(-2)
        after = DecoderState(layers, history=self._history_after(state, attended))
        return Step(after, log_probs, attended)

    def _history_after(self, state: DecoderState, reading: Reading) -> Tensor | None:
        return history_after(self.attention, state, reading.weights.squeeze(-2))

    @override
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        state = self.start(memory) if state is None else state
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        embedded = self._embedded(tokens)
        steps = FedSteps(self.stack, self._joined(embedded, memory))
        memory = shared(memory)
        outputs, contexts, attended = [], [], []
        for number, real in enumerate(real_items(mask, tokens.shape[-1])):
            reading = self.attend(state, memory)
            context = reading.context.squeeze(-2)
            hidden, layers = steps.step(number, context, state.layers)
            after = DecoderState(layers, history=self._history_after(state, reading))
            state = after if real is None else carried(real, after, state)
            outputs.append(hidden)
            contexts.append(context)
            attended.append(reading)
        vectors = self.vectors(torch.stack(outputs, -2), embedded, torch.stack(contexts, -2))
        return TeacherForced(self.dropout(vectors), tuple(attended), state)
