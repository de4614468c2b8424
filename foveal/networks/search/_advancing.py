"""The first half of a search step: every hypothesis reads a token, and its stack advances.

A stack of LSTM cells is prepared. With a small vocabulary, the product of the lowest cell with a token is
a row of a table,

    table = E W_x^T + b,   gates = table[token] + bridge W_b^T + fed W_v^T + h U^T

and the product with the bridge is computed once for the whole search. Other stacks step without preparation.

Axes: B items, K hypotheses of each, W tokens of the vocabulary, G width of all gates.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...attention import Memory
from ..decoders._recurrent_decoder import AbstractRecurrentDecoder
from ..decoders._steps import DecoderState
from ..recurrent._cells import LSTMCell
from ..recurrent._layers import CellState
from ..recurrent._stacks import StackStep
from ._matrix import Matrix
from ._prepared_lstm import GateScores, InputGates, PreparedLSTM


class AbstractAdvance(ABC):
    """Advances the stack by one token."""

    @abstractmethod
    def remember(self, memory: Memory) -> Memory:
        """Replace the summary of the memory with its precomputed product."""

    @abstractmethod
    def advance(self, state: DecoderState, tokens: Int[Tensor, "B K"], memory: Memory) -> StackStep:
        """Run the stack on one more token of every hypothesis."""


def prepare_advance(decoder: AbstractRecurrentDecoder, *, half: bool) -> AbstractAdvance:
    """Return the prepared form, if the decoder has one."""
    stack = decoder.stack
    cells = [cell for cell in stack.layers if isinstance(cell, LSTMCell)]
    if stack.residual or stack.skip or len(cells) < len(stack.layers):
        return _AsItIs(decoder)
    return LSTMs(decoder, cells, half=half)


@final
class _AsItIs(AbstractAdvance):
    """Advances any stack without preparation."""

    def __init__(self, decoder: AbstractRecurrentDecoder) -> None:
        self._decoder = decoder

    @override
    def remember(self, memory: Memory) -> Memory:
        return memory

    @override
    @torch.no_grad()
    def advance(self, state: DecoderState, tokens: Tensor, memory: Memory) -> StackStep:
        return self._decoder.advance(state, tokens, memory)


@final
class LSTMs(AbstractAdvance):
    """Advances a stack of LSTM cells, each of which reads only the cell below."""

    def __init__(
        self, decoder: AbstractRecurrentDecoder, cells: list[LSTMCell], *, half: bool
    ) -> None:
        self._embedding, self._bridge, self._cells = decoder.embedding, decoder.bridge, cells
        self._half, self._fed = half, decoder.fed

    @cached_property
    def prepared(self) -> "_PreparedStack":
        """Prepare the weights at the first step; a stepper that only starts searches does not need them."""
        embeddings, bridge_size = self._embedding.weight.detach(), self._bridge.step_size
        return _PreparedStack(embeddings, bridge_size, self._cells, half=self._half)

    @override
    @torch.no_grad()
    def remember(self, memory: Memory) -> Memory:
        if self._bridge.step_size == 0:
            return memory._replace(summary=None)
        return memory._replace(
            summary=self.prepared.of_bridge.times(self._bridge.every_step(memory))
        )

    @override
    def advance(self, state: DecoderState, tokens: Tensor, memory: Memory) -> StackStep:
        prepared = self.prepared
        table = prepared.token_gates.table
        if table is None:
            scores = GateScores(prepared.token_gates(tokens.flatten()), None, memory.summary)
        else:
            scores = GateScores(table, tokens, memory.summary)
        for fed in self._fed(state):
            scores = GateScores(scores.together(tokens.shape))
            prepared.of_fed.add_to(scores.rows, fed.flatten(0, 1))
        after: list[CellState] = []
        for (cell, from_below), before in zip(prepared.cells, state.layers, strict=True):
            if after:
                scores = GateScores(from_below(after[-1].hidden.flatten(0, 1)))
            after.append(cell.step(scores, before))
        return StackStep(after[-1].hidden, tuple(after))


@final
class _PreparedStack:
    """The cells, and the lowest cell's weights for each part of its input."""

    def __init__(
        self,
        embeddings: Float[Tensor, "W E"],
        bridge_size: int,
        cells: list[LSTMCell],
        *,
        half: bool,
    ) -> None:
        prepared = [PreparedLSTM(cell, half=half) for cell in cells]
        lowest = prepared[0]
        sizes = [embeddings.shape[1], bridge_size]
        rest = len(lowest.input_weight) - sum(sizes)
        of_token, of_bridge, of_fed = lowest.input_weight.split([*sizes, rest])
        self.of_bridge, self.of_fed = Matrix(of_bridge, half=half), Matrix(of_fed, half=half)
        self.token_gates = InputGates(of_token, lowest.bias, embeddings, half=half)
        self.cells = [
            (each, InputGates(each.input_weight, each.bias, half=half)) for each in prepared
        ]
