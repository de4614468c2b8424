"""Decoders: recurrent networks that generate one token after another.

    s_t = RNN( s_{t-1}, [y_{t-1}; bridge] )
    p(y_t | y_<t) = softmax( W v_t + b )

    without attention   v_t = s_t
    with attention      v_t = tanh( U [c_t; s_t] ),   c_t = attention(s_t, memory)

Reference: Luong et al. 2015, eq. 5 and 6 (the attentional vector v). The next step does not read v, so
teacher forcing runs the stack over all tokens and attends with all steps at once.

Axes: *batch any leading shape, T tokens, Q queries, S positions, W tokens of the vocabulary, H width of
the stack's output, A of the vector v.
"""

from abc import abstractmethod
from typing import Any, Unpack, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Attended, Attention, HierarchicalAttention, Memory, MultiHead
from ...attention.history._history import with_history
from ...batch_invariant import Linear
from .._bridges import summarized
from ._history import first_history, histories, history_after, memory_at
from ._recurrent_decoder import DecoderParts
from ._steps import DecoderState, Reading, Step, TeacherForced
from ._vector_decoder import AbstractRecurrentVectorDecoder, VectorDecoderParts

# Any attention whose queries are the steps of the decoder.
Attends = Attention | MultiHead | HierarchicalAttention


class AbstractDecoder(AbstractRecurrentVectorDecoder):
    """A decoder that computes the vector of each step from the output of its stack.

    Subclasses implement `read`, which computes this vector. This class implements one step and all steps at
    once.
    """

    @abstractmethod
    def read(
        self, hidden: Float[Tensor, "*batch Q H"], memory: Memory
    ) -> tuple[Float[Tensor, "*batch Q A"], Reading | None]:
        """Compute the vector v for each output of the stack, before dropout, and the attention.

        Args:
            hidden: Outputs of the stack, one for each query.
            memory: Encoded input, from `remember`.

        Returns:
            The vectors and the attention; None in place of the attention if there is none.
        """

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        hidden, layers = self.advance(state, token, memory)
        vectors, attended = self.read(hidden.unsqueeze(-2), memory_at(state, memory))
        vectors = self.dropout(vectors)
        readings = () if attended is None else (attended,)
        log_probs = self.log_probs(vectors, readings, memory).squeeze(-2)
        weights = None if attended is None else attended.weights.squeeze(-2)
        history = self._history_after(state, weights)
        after = DecoderState(layers, self.own(vectors.squeeze(-2)), history)
        return Step(after, log_probs, attended)

    def own(self, vector: Float[Tensor, "*batch A"]) -> Any:
        """Return the decoder-specific part of the state after a step with this vector.

        Args:
            vector: Vector v of the step, after dropout.

        Returns:
            The value of `DecoderState.own`; None by default.
        """
        del vector

    @override
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        """Compute the vectors of all steps, with the fused kernel and one call of the attention."""
        state = self.start(memory) if state is None else state
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        hidden, layers = self.stack(self._input(tokens, memory), mask, state.layers)
        before, history = self._histories(hidden, memory, mask, state)
        vectors, reading = self.read(hidden, with_history(memory, before))
        attended = () if reading is None else (reading,)
        return TeacherForced(self.dropout(vectors), attended, DecoderState(layers, history=history))

    def _history_after(self, state: DecoderState, weights: Tensor | None) -> Tensor | None:
        """Return the history of the attention after a step with weights `(*batch, S)`, if it has any."""
        del state, weights

    def _histories(
        self, hidden: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the history before each step `(*batch, T, S)` and after the last, if the attention has any."""
        del hidden, memory, mask, state
        return None, None


@final
class PlainDecoder(AbstractDecoder):
    """A decoder without attention.

    It depends on the source only through its bridge (Sutskever et al. 2014), or not at all (a language
    model, with `NoBridge` and `no_memory`).

    Args:
        **parts: `embedding`, `stack` and `bridge`, and optionally `tie_embeddings`, to use the embedding as the
            weights of the output layer, and `dropout`, a probability.

    Examples:
        >>> from torch import nn
        >>> from foveal.networks import NoBridge, recurrent_stack
        >>> from foveal.networks._bridges import no_memory
        >>> decoder = PlainDecoder(
        ...     embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=NoBridge()
        ... )
        >>> decoder.unroll(torch.tensor([[1, 2, 3]]), no_memory(1)).log_probs.shape
        torch.Size([1, 3, 9])
    """

    def __init__(self, **parts: Unpack[DecoderParts]) -> None:
        super().__init__(vector_size=parts["stack"].output_size, **parts)

    @override
    def read(
        self, hidden: Float[Tensor, "*batch Q H"], memory: Memory
    ) -> tuple[Float[Tensor, "*batch Q H"], None]:
        return hidden, None

    def self_attentions(
        self, tokens: Int[Tensor, "*batch T"], mask: Bool[Tensor, "*batch T"] | None = None
    ) -> tuple[Attended, ...]:
        """Return no attention: a recurrent network reads earlier tokens through its state.

        Args:
            tokens: Token ids of a text.
            mask: True on real tokens; None if all tokens are real.

        Returns:
            An empty tuple.
        """
        del tokens, mask
        return ()


class AbstractAttentionDecoder(AbstractDecoder):
    """A decoder that attends after each step of its stack: v = tanh(U [context; hidden])."""

    def __init__(
        self,
        *,
        attention: Attends,
        value_size: int,
        vector_size: int,
        fed_size: int = 0,
        **parts: Unpack[VectorDecoderParts],
    ) -> None:
        super().__init__(vector_size=vector_size, fed_size=fed_size, **parts)
        self.attention = attention
        hidden_size = parts["stack"].output_size
        self.combine = Linear(value_size + hidden_size, vector_size, bias=False)

    @override
    def remember(self, memory: Memory) -> Memory:
        return self.attention.remember(summarized(memory))

    @override
    def start(self, memory: Memory) -> DecoderState:
        return super().start(memory)._replace(history=first_history(self.attention, memory))

    @override
    def _history_after(self, state: DecoderState, weights: Tensor | None) -> Tensor | None:
        return history_after(self.attention, state, weights)

    @override
    def _histories(
        self, hidden: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState
    ) -> tuple[Tensor | None, Tensor | None]:
        if state.history is None:
            return None, None
        return histories(self.attention, hidden, memory, mask, state.history)

    @override
    def read(
        self, hidden: Float[Tensor, "*batch Q H"], memory: Memory
    ) -> tuple[Float[Tensor, "*batch Q A"], Reading]:
        attended = self.attention(hidden, memory)
        return torch.tanh(self.combine(torch.cat([attended.context, hidden], -1))), attended


@final
class AttentionDecoder(AbstractAttentionDecoder):
    """A decoder with attention but without input feeding: the stack does not depend on the attention.

    Args:
        attention: Attention whose queries are the outputs of the stack.
        value_size: Width of the values of the memory.
        vector_size: Width of the vector v before the output layer; defaults to the width of the stack's output.
        **parts: `embedding`, `stack` and `bridge`, and optionally `tie_embeddings`, to use the embedding as the
            weights of the output layer, and `dropout`, a probability.

    Examples:
        >>> from torch import nn
        >>> from foveal.attention import softmax_attention
        >>> from foveal.networks import InitialStateBridge, recurrent_stack
        >>> stack = recurrent_stack(4, 5)
        >>> decoder = AttentionDecoder(
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
        vector_size: int | None = None,
        **parts: Unpack[VectorDecoderParts],
    ) -> None:
        size = parts["stack"].output_size if vector_size is None else vector_size
        super().__init__(attention=attention, value_size=value_size, vector_size=size, **parts)
