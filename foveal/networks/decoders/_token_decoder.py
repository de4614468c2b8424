"""The interface of all decoders: they generate one token after another.

Axes: *batch any leading shape, T tokens, W tokens of the vocabulary.
"""

from abc import ABC, abstractmethod

from jaxtyping import Bool, Int
from torch import Tensor, nn

from ...attention import Memory
from .._dropout import Dropout
from ._output import AbstractTokenOutput
from ._steps import DecoderState, Step, TokenLosses, Unrolled


class AbstractTokenDecoder(nn.Module, ABC):
    """A network that generates tokens from a memory.

    Subclasses define one step, all steps at once, and their loss.
    """

    embedding: nn.Embedding  # vectors of the tokens; the output layer predicts the same tokens
    output: AbstractTokenOutput
    dropout: Dropout

    @property
    def copies(self) -> bool:
        """Whether it copies tokens of the source, which `Memory.copies` must then hold."""
        return False

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

    @abstractmethod
    def remember(self, memory: Memory) -> Memory:
        """Compute the parts of the memory that every step needs, once; call it before `start`.

        Args:
            memory: Output of an encoder.

        Returns:
            The memory with its summary and, if the decoder attends, its keys.
        """

    @abstractmethod
    def start(self, memory: Memory) -> DecoderState:
        """Return the state before the first token.

        Args:
            memory: Encoded input, from `remember`.

        Returns:
            The initial state, with the batch axes of the memory.
        """

    def _remembered(self, memory: Memory) -> Memory:
        """Return the memory with keys and summary, whether or not the caller has called `remember`."""
        return memory if memory.keys is not None else self.remember(memory)
