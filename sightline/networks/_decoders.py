"""Decoders: a recurrent network that writes, one token after another.

    s_t = RNN( s_{t-1}, [y_{t-1}; bridge] )
    p(y_t | y_<t) = softmax( W v_t + b )

    without attention   v_t = s_t
    with attention      v_t = tanh( U [c_t; s_t] ),   c_t = attention(s_t, memory)

Reference: Luong et al. 2015, eq. 5 and 6 (the attentional vector v). Neither reads v at the next
step, so that teacher forcing runs the stack over all tokens and attends with all steps at once.

Axes: *batch any leading shape, T tokens, S places, W tokens of the vocabulary.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ..attention import (
    Attended,
    Attention,
    HierarchicalAttended,
    HierarchicalAttention,
    Memory,
    MultiHead,
)
from ..errors import ShapeError
from ._bridges import AbstractBridge, summarised, summary_of
from ._cells import carry
from ._output import TokenOutput
from ._stacks import RecurrentStack, StackState

# Any attention whose queries are the steps of the decoder.
Attends = Attention | MultiHead | HierarchicalAttention
Reading = Attended | HierarchicalAttended


class DecoderState(NamedTuple):
    """Where a decoder is; every tensor in it has the batch axes first."""

    layers: StackState
    fed: Float[Tensor, "*batch A"] | None = None  # the attentional vector, with input feeding


class Step(NamedTuple):
    """One step: the state after it, what may come next, and what was read (one query)."""

    state: DecoderState
    log_probs: Float[Tensor, "*batch W"]
    attended: Reading | None


class Unrolled(NamedTuple):
    """All steps: `log_probs[t]` is of the token after `tokens[t]`, and 0 on padding.

    `attended` holds what was read: one reading with T queries, T readings with one query (input
    feeding), or none. What a padded token would read is among them, and means nothing.
    """

    log_probs: Float[Tensor, "*batch T W"]
    attended: tuple[Reading, ...]
    state: DecoderState

    @property
    def weights(self) -> Tensor | None:
        """The weights of all steps: `(*batch, T, S)`, or `(*batch, T, n, w)` over words in
        sentences; None without attention.
        """
        if not self.attended:
            return None
        axis = -3 if isinstance(self.attended[0], HierarchicalAttended) else -2
        return torch.cat([reading.weights for reading in self.attended], axis)


class AbstractDecoder(nn.Module, ABC):
    """A decoder asks for one step. The rest is here: `unroll` repeats the step, and a decoder that
    can do better overrides it.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        bridge: AbstractBridge,
        fed_size: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        expected = embedding.embedding_dim + bridge.step_size + fed_size
        if stack.input_size != expected:
            raise ShapeError(
                f"{type(self).__name__}: the stack must have input_size {expected}, "
                f"got {stack.input_size}. It reads the token ({embedding.embedding_dim}), "
                f"the bridge ({bridge.step_size}) and what is fed back ({fed_size})."
            )
        self.embedding, self.stack, self.bridge = embedding, stack, bridge
        self.dropout = nn.Dropout(dropout)

    def remember(self, memory: Memory) -> Memory:
        """What every step needs of the memory, computed once; call it before `start`."""
        return summarised(memory)

    def start(self, memory: Memory) -> DecoderState:
        """The state before the first token; `memory` comes from `remember`."""
        zero = self.stack.start(summary_of(memory).shape[:-1])
        return DecoderState(self.bridge.start(memory, zero))

    @abstractmethod
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        """Read one token; say what may come next."""

    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        """Teacher forcing: read all tokens, the begin symbol first, and say what may come after
        each. A token that the mask leaves out is skipped: the state is carried over it.
        """
        memory = self._remembered(memory)
        state = self.start(memory) if state is None else state
        log_probs, attended = [], []
        for t in range(tokens.shape[-1]):
            real = None if mask is None else mask[..., t]
            token = tokens[..., t] if real is None else tokens[..., t].masked_fill(~real, 0)
            step = self.step(state, token, memory)
            state = step.state if real is None else _carried(real, step.state, state)
            log_probs.append(step.log_probs)
            attended.append(step.attended)
        readings = tuple(reading for reading in attended if reading is not None)
        return Unrolled(_without_padding(torch.stack(log_probs, -2), mask), readings, state)

    def _remembered(self, memory: Memory) -> Memory:
        """The memory with keys and summary, whether or not the caller has remembered it."""
        return memory if memory.keys is not None else self.remember(memory)

    def _input(self, token: Tensor, memory: Memory, *others: Tensor) -> Tensor:
        """What the stack reads: the token `(*batch)` or `(*batch, T)`, the bridge, the rest."""
        embedded = self.dropout(self.embedding(token))
        bridge = self.bridge.every_step(memory)
        if embedded.ndim > bridge.ndim:
            bridge = bridge.unsqueeze(-2).expand(*embedded.shape[:-1], -1)
        return torch.cat([embedded, bridge, *others], -1)

    def _hidden(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> tuple[Tensor, DecoderState]:
        """The stack's output at every token, on the fused kernel; for decoders that feed nothing."""
        state = self.start(memory) if state is None else state
        tokens = tokens if mask is None else tokens.masked_fill(~mask, 0)
        ran = self.stack(self._input(tokens, memory), mask, state.layers)
        return ran.outputs, DecoderState(ran.state)


@final
class PlainDecoder(AbstractDecoder):
    """A decoder without attention: it knows the source by its bridge alone (Sutskever et al. 2014),
    or not at all (a language model, with `Unconditioned` and `no_memory`).

    >>> from sightline.networks import Unconditioned, no_memory, recurrent_stack
    >>> decoder = PlainDecoder(
    ...     embedding=nn.Embedding(9, 4), stack=recurrent_stack(4, 5), bridge=Unconditioned()
    ... )
    >>> decoder.unroll(torch.tensor([[1, 2, 3]]), no_memory(1)).log_probs.shape
    torch.Size([1, 3, 9])
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        bridge: AbstractBridge,
        tied: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding=embedding, stack=stack, bridge=bridge, dropout=dropout)
        self.output = TokenOutput(stack.output_size, embedding, tied=tied)

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        hidden, layers = self.stack.step(self._input(token, memory), state.layers)
        log_probs = self.output(self.dropout(hidden), self.embedding)
        return Step(DecoderState(layers), log_probs, None)

    @override
    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        memory = self._remembered(memory)
        hidden, state = self._hidden(tokens, memory, mask, state)
        log_probs = self.output(self.dropout(hidden), self.embedding)
        return Unrolled(_without_padding(log_probs, mask), (), state)


@final
class AttentionDecoder(AbstractDecoder):
    """A decoder that attends after each step: v = tanh(U [context; hidden]).

    >>> from sightline.attention import softmax_attention
    >>> from sightline.networks import InitialState, recurrent_stack
    >>> stack = recurrent_stack(4, 5)
    >>> decoder = AttentionDecoder(
    ...     embedding=nn.Embedding(9, 4), stack=stack, bridge=InitialState(6, stack),
    ...     attention=softmax_attention(5, 6), value_size=6,
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
        vector_size: int | None = None,
        tied: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedding=embedding, stack=stack, bridge=bridge, dropout=dropout)
        size = stack.output_size if vector_size is None else vector_size
        self.attention = attention
        self.combine = nn.Linear(value_size + stack.output_size, size, bias=False)
        self.output = TokenOutput(size, embedding, tied=tied)

    @override
    def remember(self, memory: Memory) -> Memory:
        return self.attention.remember(summarised(memory))

    @override
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        hidden, layers = self.stack.step(self._input(token, memory), state.layers)
        log_probs, attended = self._attend(hidden.unsqueeze(-2), memory)
        return Step(DecoderState(layers), log_probs.squeeze(-2), attended)

    @override
    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        memory = self._remembered(memory)
        hidden, state = self._hidden(tokens, memory, mask, state)
        log_probs, attended = self._attend(hidden, memory)
        return Unrolled(_without_padding(log_probs, mask), (attended,), state)

    def _attend(
        self, hidden: Float[Tensor, "*batch T H"], memory: Memory
    ) -> tuple[Float[Tensor, "*batch T W"], Reading]:
        attended = self.attention(hidden, memory)
        vector = torch.tanh(self.combine(torch.cat([attended.context, hidden], -1)))
        return self.output(self.dropout(vector), self.embedding), attended


def _carried(real: Tensor, after: DecoderState, before: DecoderState) -> DecoderState:
    """The state after the step where its token was real, the one before it elsewhere."""
    real = real.unsqueeze(-1)
    layers = (carry(real, new, old) for new, old in zip(after.layers, before.layers, strict=True))
    if after.fed is None or before.fed is None:
        return DecoderState(tuple(layers))
    return DecoderState(tuple(layers), torch.where(real, after.fed, before.fed))


def _without_padding(log_probs: Tensor, mask: Tensor | None) -> Tensor:
    return log_probs if mask is None else log_probs.masked_fill(~mask.unsqueeze(-1), 0.0)
