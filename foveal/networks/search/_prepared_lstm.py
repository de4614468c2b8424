"""An LSTM cell prepared for search: its weights and gates are arranged for the fewest operations per
step.

    i, f, o = sigmoid(gates[: 3 H]),   g = tanh(gates[3 H :]),   c' = f * c + i * g,   h' = o * tanh(c')

Torch orders the gates as i, f, g, o. Here the three sigmoid gates come first and form one block. The C++ kernels, which
take a whole step in one call, have the gates in groups of units instead.

Axes: N rows, W tokens of the vocabulary, D width of an input, H of a state, G of all gates.
"""

from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..recurrent._cells import LSTMCell
from ..recurrent._layers import CellState
from ._kernels import by_unit, serves
from ._matrix import Matrix

# Entries of the largest table, 16 MB of float32: 4,096 words for a hidden size of 256. Fetching a row of a
# larger table is not much cheaper than computing it.
_TABLE = 2**22


class GateScores(NamedTuple):
    """The scores of the gates from the input of a step.

    Row n belongs to hypothesis n, or with `tokens`, row w to the token w. The scores of an item add to those of its
    hypotheses.
    """

    rows: Float[Tensor, "N G"]
    tokens: Int[Tensor, "B K"] | None = None
    of_item: Float[Tensor, "B G"] | None = None

    def together(self, shape: tuple[int, ...]) -> Float[Tensor, "N G"]:
        """Return one row for each hypothesis, a new tensor if there was a table, for hypotheses of the shape (B, K)."""
        rows = (
            self.rows if self.tokens is None else self.rows.index_select(0, self.tokens.flatten())
        )
        if self.of_item is not None:
            rows.view(*shape, -1).add_(self.of_item.unsqueeze(1))
        return rows


@final
class PreparedLSTM:
    """The current weights of one cell, without gradients."""

    def __init__(self, cell: LSTMCell, *, half: bool = False) -> None:
        weights = cell.weights
        self.size = cell.output_size
        self._in_units = serves(weights.hidden, half=half)
        self.input_weight: Float[Tensor, "D G"] = self._by_gate(weights.input).T
        self.from_state = Matrix(self._by_gate(weights.hidden).T, half=half)
        self.bias: Float[Tensor, " G"] = self._by_gate(weights.input_bias + weights.hidden_bias)

    def step(self, scores: GateScores, before: CellState) -> CellState:
        """Take a step; it may overwrite the scores, unless they are a table."""
        hidden, memory = before
        assert memory is not None
        if (packed := self.from_state.packed) is not None:
            return CellState(
                *torch.ops.foveal_native.search_step(
                    *scores, hidden, memory, packed.blocks, packed.half
                )
            )
        gates = scores.together(hidden.shape[:2])
        self.from_state.add_to(gates, hidden.flatten(0, 1))
        return CellState(*self.update(gates.view(*hidden.shape[:2], -1), memory))

    def update(
        self, gates: Float[Tensor, "*rows G"], memory: Float[Tensor, "*rows H"]
    ) -> tuple[Float[Tensor, "*rows H"], Float[Tensor, "*rows H"]]:
        """Compute hidden vector and memory after a step; it overwrites `gates`, the scores."""
        gates.narrow(-1, 0, 3 * self.size).sigmoid_()
        i, f, o, new = gates.chunk(4, -1)
        after = torch.mul(f, memory).addcmul_(i, new.tanh_())
        return torch.tanh(after).mul_(o), after

    def update_(
        self,
        gates: Float[Tensor, "N G"],
        memory: Float[Tensor, "N H"],
        hidden: Float[Tensor, "N H"],
    ) -> None:
        """Update the memory in place and write the hidden vector into `hidden`."""
        gates.narrow(-1, 0, 3 * self.size).sigmoid_()
        i, f, o, new = gates.chunk(4, -1)
        memory.mul_(f).addcmul_(i, new.tanh_())
        torch.mul(torch.tanh(memory), o, out=hidden)

    def _by_gate(self, part: Tensor) -> Tensor:
        i, f, g, o = part.detach().split(self.size)
        return by_unit([i, f, o, g]) if self._in_units else torch.cat([i, f, o, g])


@final
class InputGates:
    """Computes W x + b of the gates, for rows of inputs or, with a table of embeddings, for tokens.

    With a small vocabulary, the scores of all tokens are computed once.
    """

    def __init__(
        self,
        weight: Float[Tensor, "D G"],
        bias: Float[Tensor, " G"],
        embeddings: Float[Tensor, "W D"] | None = None,
        *,
        half: bool = False,
    ) -> None:
        self._weight, self._bias = Matrix(weight, half=half), bias
        self._embeddings, self._table = embeddings, None
        if embeddings is not None and len(embeddings) * len(bias) <= _TABLE:
            self._table = torch.addmm(bias, embeddings, weight)

    @property
    def table(self) -> Float[Tensor, "W G"] | None:
        """Return the scores of all tokens; None if the vocabulary is too large or inputs are no tokens."""
        return self._table

    def __call__(self, inputs: Tensor) -> Float[Tensor, "N G"]:
        """Compute the scores, as a new tensor."""
        if self._table is not None:
            return self._table.index_select(0, inputs)
        if self._embeddings is not None:
            inputs = self._embeddings.index_select(0, inputs)
        return self._weight.plus(self._bias, inputs)
