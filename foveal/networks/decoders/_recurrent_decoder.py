"""The base of recurrent decoders: a recurrent network that reads one token after another.

    s_t = RNN( s_{t-1}, [y_{t-1}; bridge; ...] )

Axes: *batch any leading shape, T tokens, W tokens of the vocabulary, E width of an embedding.
"""

from typing import NotRequired, TypedDict

import torch
from jaxtyping import Int
from torch import Tensor, nn
from typing_extensions import override

from ...attention import Memory
from ...errors import ShapeError
from .._bridges import AbstractBridge, summarized, summary_of
from .._dropout import Dropout
from ..recurrent._stacks import RecurrentStack, StackStep
from ._output import AbstractTokenOutput, TokenOutput
from ._steps import DecoderState
from ._token_decoder import AbstractTokenDecoder


class DecoderParts(TypedDict):
    """The parts of every decoder, as keyword arguments."""

    embedding: nn.Embedding
    stack: RecurrentStack
    bridge: AbstractBridge
    tie_embeddings: NotRequired[bool]
    dropout: NotRequired[float]


class AbstractRecurrentDecoder(AbstractTokenDecoder):
    """A recurrent network that generates tokens.

    Subclasses define how it reads a memory.

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
        self.output: AbstractTokenOutput = TokenOutput(
            vector_size, embedding, tie_embeddings=tie_embeddings
        )
        self.dropout = Dropout(dropout)

    @override
    def remember(self, memory: Memory) -> Memory:
        return summarized(memory)

    @override
    def start(self, memory: Memory) -> DecoderState:
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
