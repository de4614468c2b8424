"""What a search needs from the graph of a decoder.

Axes: B items, K hypotheses of each, S positions, W tokens of the vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from ._graph import Value
from ._memory import MemoryGraph


class Started(NamedTuple):
    """The memory as every step reads it, and the state before the first token: `(B, ...)`."""

    kept: dict[str, Value]
    state: dict[str, Value]


class Stepped(NamedTuple):
    """One step of all hypotheses."""

    log_probs: Value  # (B, K, W)
    weights: Value | None  # (B, K, S)
    state: dict[str, Value]  # (B, K, ...)


class DecoderGraph(ABC):
    """A decoder that takes one step at a time."""

    num_tokens: int  # W

    @abstractmethod
    def start(self, memory: MemoryGraph) -> Started:
        """Prepare a memory, once for each source.

        Args:
            memory: The encoded sources.

        Returns:
            What all steps read, and the first state.
        """

    @abstractmethod
    def step(
        self, kept: Mapping[str, Value], state: Mapping[str, Value], tokens: Value, number: Value
    ) -> Stepped:
        """Feed one token to every hypothesis.

        Args:
            kept: The memory, from `start`.
            state: State of every hypothesis `(B, K, ...)`.
            tokens: Token ids `(B, K)`.
            number: Number of earlier steps, one integer.

        Returns:
            Log-probabilities of the next token, attention weights and the next state.
        """
