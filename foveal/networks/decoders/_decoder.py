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

from abc import ABC, abstractmethod
from typing import Any, NotRequired, TypedDict, Unpack, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Attention, HierarchicalAttention, Memory, MultiHead
from ...batch_invariant import Linear
from ...errors import ShapeError
from .._bridges import AbstractBridge, summarized, summary_of
from .._dropout import Dropout
from ..recurrent._stacks import RecurrentStack, StackStep
from ._output import TokenOutput
from ._steps import DecoderState, Reading, Step, TeacherForced, TokenLosses, Unrolled

# Any attention whose queries are the steps of the decoder.
Attends = Attention | MultiHead | HierarchicalAttention


class DecoderParts(TypedDict):
    """The parts of every decoder, as keyword arguments."""

    embedding: nn.Embedding
    stack: RecurrentStack
    bridge: AbstractBridge
    tie_embeddings: NotRequired[bool]
    dropout: NotRequired[float]


class AbstractRecurrentDecoder(nn.Module, ABC):
    """A recurrent network that generates tokens.

    Subclasses define how it reads a memory: one step, all steps at once, and their loss.

    Args:
        embedding: Table of the token vectors; the output layer predicts the same tokens.
        stack: Recurrent layers; their input is the token, the bridge and `fed_size` more values.
        bridge: Provides the initial state and an additional input of every step.
        vector_size: Width of the vector v before the output layer.
        fed_size: Width of the inputs of the stack apart from token and bridge.
        tie_embeddings: Use the embedding as the weights of the output layer; `vector_size` must then be the
            width of the embedding.
        dropout: Dropout probability of the embedded tokens and of the vector v.

    Raises:
        ShapeError: If the input width of the stack is not the sum of its parts.
    """

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        bridge: AbstractBridge,
        vector_size: int,
        fed_size: int = 0,
        tie_embeddings: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        expected = embedding.embedding_dim + bridge.step_size + fed_size
        if stack.input_size != expected:
            raise ShapeError(
                f"{type(self).__name__}: the stack must have input_size {expected}, got "
                f"{stack.input_size}. It reads the token ({embedding.embedding_dim}), the bridge "
                f"({bridge.step_size}) and the context that is fed back ({fed_size})."
            )
        self.embedding, self.stack, self.bridge = embedding, stack, bridge
        self.output = TokenOutput(vector_size, embedding, tie_embeddings=tie_embeddings)
        self.dropout = Dropout(dropout)

    @abstractmethod
    def step(self, state: DecoderState, token: Int[Tensor, "*batch"], memory: Memory) -> Step:
        """Read one token and return log-probabilities of the next.

        Args:
            state: State before the token, from `start` or from the previous step.
            token: One token id for each item.
            memory: Encoded input, from `remember`.

        Returns:
            The new state, the log-probabilities of the next token, and the attention.
        """

    @abstractmethod
    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        """Run teacher forcing: read all tokens, the begin symbol first, and predict the token after each.

        A masked token is skipped: the state does not change.

        Args:
            tokens: Token ids to read, the begin symbol first.
            memory: Encoded input; `remember` is called if the caller has not done so.
            mask: True on real tokens; None if all tokens are real.
            state: State before the first token; defaults to the state from `start`.

        Returns:
            The log-probabilities of the token after each token, the attention, and the final state.
        """

    @abstractmethod
    def score(
        self,
        tokens: Int[Tensor, "*batch T"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> TokenLosses:
        """Compute the loss with teacher forcing: `targets[t]` is the target after `tokens[t]`.

        It never builds the whole table of log-probabilities `(*batch, T, W)`, which takes most of the time
        and memory of `unroll`.

        Args:
            tokens: Token ids to read, the begin symbol first.
            targets: Token ids to predict, the end symbol last.
            memory: Encoded input; `remember` is called if the caller has not done so.
            mask: True on real tokens; None if all tokens are real.
            state: State before the first token; defaults to the state from `start`.
            label_smoothing: Weight of the uniform distribution in the target distribution.

        Returns:
            The loss and the log-probability of each target, the attention, and the final state.
        """

    def remember(self, memory: Memory) -> Memory:
        """Compute the parts of the memory that every step needs, once; call it before `start`.

        Args:
            memory: Output of an encoder.

        Returns:
            The memory with its summary and, if the decoder attends, its keys.
        """
        return summarized(memory)

    def start(self, memory: Memory) -> DecoderState:
        """Return the state before the first token.

        Args:
            memory: Encoded input, from `remember`.

        Returns:
            The initial state, with the batch axes of the memory.
        """
        zero = self.stack.start(summary_of(memory).shape[:-1])
        return DecoderState(self.bridge.start(memory, zero))

    def advance(
        self, state: DecoderState, token: Int[Tensor, "*tokens"], memory: Memory
    ) -> StackStep:
        """Run the stack on one more token.

        The state may have more axes than the memory: several hypotheses of one memory.

        Args:
            state: State before the token.
            token: One token id for each item or hypothesis.
            memory: Encoded input, from `remember`.

        Returns:
            The output of the stack and the new state of its layers.
        """
        read = self._input(token, memory, *self.fed(state))
        return self.stack.step(read, state.layers)

    def fed(self, state: DecoderState) -> tuple[Tensor, ...]:
        """Return the inputs of the stack apart from token and bridge.

        Args:
            state: State before the step.

        Returns:
            Tensors with a total width of `fed_size`; empty by default.
        """
        del state
        return ()

    def _remembered(self, memory: Memory) -> Memory:
        """Return the memory with keys and summary, whether or not the caller has called `remember`."""
        return memory if memory.keys is not None else self.remember(memory)

    def _input(self, token: Tensor, memory: Memory, *others: Tensor) -> Tensor:
        """Compute the input of the stack for one token `(*batch)` or for all tokens `(*batch, T)`."""
        return self._joined(self._embedded(token), memory, *others)

    def _embedded(self, token: Tensor) -> Tensor:
        """Return the vector of each token."""
        return self.dropout(self.embedding(token))

    def _joined(self, embedded: Tensor, memory: Memory, *others: Tensor) -> Tensor:
        """Concatenate the input of the stack: the token `(*batch, E)` or `(*batch, T, E)`, the bridge, the rest."""
        bridge = self.bridge.every_step(memory)
        if embedded.ndim > bridge.ndim:
            bridge = bridge.unsqueeze(-2).expand(*embedded.shape[:-1], -1)
        return torch.cat([embedded, bridge, *others], -1)


class AbstractVectorDecoder(AbstractRecurrentDecoder):
    """A decoder that predicts the token of each step from one vector.

    Subclasses compute the vectors of all steps; this class turns them into log-probabilities and losses.
    """

    @override
    def unroll(
        self,
        tokens: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
    ) -> Unrolled:
        vectors, attended, state = self._teach(tokens, self._remembered(memory), mask, state)
        log_probs = self.output(vectors, self.embedding)
        if mask is not None:
            log_probs = log_probs.masked_fill(~mask.unsqueeze(-1), 0.0)
        return Unrolled(log_probs, attended, state)

    @override
    def score(
        self,
        tokens: Int[Tensor, "*batch T"],
        targets: Int[Tensor, "*batch T"],
        memory: Memory,
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: DecoderState | None = None,
        *,
        label_smoothing: float = 0.0,
    ) -> TokenLosses:
        vectors, attended, state = self._teach(tokens, self._remembered(memory), mask, state)
        loss, log_prob = self.output.score(
            vectors, self.embedding, targets, mask, label_smoothing=label_smoothing
        )
        return TokenLosses(loss, log_prob, attended, state)

    @abstractmethod
    def _teach(
        self, tokens: Tensor, memory: Memory, mask: Tensor | None, state: DecoderState | None
    ) -> TeacherForced:
        """Compute the vectors of all steps, after dropout."""


class AbstractDecoder(AbstractVectorDecoder):
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
        vectors, attended = self.read(hidden.unsqueeze(-2), memory)
        vector = self.dropout(vectors).squeeze(-2)
        log_probs = self.output(vector, self.embedding)
        return Step(DecoderState(layers, self.own(vector)), log_probs, attended)

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
        vectors, reading = self.read(hidden, memory)
        attended = () if reading is None else (reading,)
        return TeacherForced(self.dropout(vectors), attended, DecoderState(layers))


@final
class PlainDecoder(AbstractDecoder):
    """A decoder without attention.

    It depends on the source only through its bridge (Sutskever et al. 2014), or not at all (a language
    model, with `NoBridge` and `no_memory`).

    Args:
        **parts: `embedding`, `stack` and `bridge`, and optionally `tie_embeddings`, to use the embedding as the
            weights of the output layer, and `dropout`, a probability.

    Examples:
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


class AbstractAttentionDecoder(AbstractDecoder):
    """A decoder that attends after each step of its stack: v = tanh(U [context; hidden])."""

    def __init__(
        self,
        *,
        attention: Attends,
        value_size: int,
        vector_size: int,
        fed_size: int = 0,
        **parts: Unpack[DecoderParts],
    ) -> None:
        super().__init__(vector_size=vector_size, fed_size=fed_size, **parts)
        self.attention = attention
        hidden_size = parts["stack"].output_size
        self.combine = Linear(value_size + hidden_size, vector_size, bias=False)

    @override
    def remember(self, memory: Memory) -> Memory:
        return self.attention.remember(summarized(memory))

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
        **parts: Unpack[DecoderParts],
    ) -> None:
        size = parts["stack"].output_size if vector_size is None else vector_size
        super().__init__(attention=attention, value_size=value_size, vector_size=size, **parts)
