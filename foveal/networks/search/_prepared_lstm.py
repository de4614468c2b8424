"""An LSTM cell prepared for search: its weights and gates are arranged for the fewest operations per
step.

    i, f, o = sigmoid(gates[: 3 H]),   g = tanh(gates[3 H :]),   c' = f * c + i * g,   h' = o * tanh(c')

Torch orders the gates as i, f, g, o. Here the three sigmoid gates come first and form one block.

Axes: N rows, W tokens of the vocabulary, D width of an input, H of a state, G of all gates.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..recurrent._cells import LSTMCell
from ._matrix import Matrix

# Entries of the largest table, 16 MB of float32: 4,096 words for a hidden size of 256. Fetching a row of a
# larger table is not much cheaper than computing it.
_TABLE = 2**22


@final
class PreparedLSTM:
    """The current weights of one cell, without gradients."""

    def __init__(self, cell: LSTMCell, *, half: bool = False) -> None:
        weights = cell.weights
        self.size = cell.output_size
        self.input_weight: Float[Tensor, "D G"] = self._by_gate(weights.input).T
        self.from_state = Matrix(self._by_gate(weights.hidden).T, half=half)
        self.bias: Float[Tensor, " G"] = self._by_gate(weights.input_bias + weights.hidden_bias)

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
        return torch.cat([i, f, o, g])


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

    def __call__(self, inputs: Tensor) -> Float[Tensor, "N G"]:
        """Compute the scores, as a new tensor."""
        if self._table is not None:
            return self._table.index_select(0, inputs)
        if self._embeddings is not None:
            inputs = self._embeddings.index_select(0, inputs)
        return self._weight.plus(self._bias, inputs)
