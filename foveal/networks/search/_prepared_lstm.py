"""An LSTM cell made ready to step: its weights laid out for the products of a step, its gates for
as few operations as there can be.

    i, f, o = sigmoid(gates[: 3 H]),   g = tanh(gates[3 H :]),   c' = f * c + i * g,   h' = o * tanh(c')

The order of the gates, which torch has as i, f, g, o, makes the three that are squashed alike one
block.

Axes: N rows, W tokens of the vocabulary, D width of an input, H of a state, G of all gates.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from ..recurrent._cells import LSTMCell
from ._matrix import Matrix

# Entries of the largest table, 16 MB of float32: 4,096 words for a hidden size of 256. A row of a
# larger one is no longer much cheaper to fetch than to compute.
_TABLE = 2**22


@final
class PreparedLSTM:
    """The weights of one cell as they are now, without gradients."""

    def __init__(self, cell: LSTMCell, *, half: bool = False) -> None:
        weights = cell.weights
        self.size = cell.output_size
        self.input_weight: Float[Tensor, "D G"] = self._by_gate(weights.input).T
        self.from_state = Matrix(self._by_gate(weights.hidden).T, half=half)
        self.bias: Float[Tensor, " G"] = self._by_gate(weights.input_bias + weights.hidden_bias)

    def update(
        self, gates: Float[Tensor, "*rows G"], memory: Float[Tensor, "*rows H"]
    ) -> tuple[Float[Tensor, "*rows H"], Float[Tensor, "*rows H"]]:
        """Hidden vector and memory after a step; `gates`, their scores, are used up."""
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
        """The same with the memory changed in place and the hidden vector written where it goes."""
        gates.narrow(-1, 0, 3 * self.size).sigmoid_()
        i, f, o, new = gates.chunk(4, -1)
        memory.mul_(f).addcmul_(i, new.tanh_())
        torch.mul(torch.tanh(memory), o, out=hidden)

    def _by_gate(self, part: Tensor) -> Tensor:
        i, f, g, o = part.detach().split(self.size)
        return torch.cat([i, f, o, g])


@final
class InputGates:
    """W x + b of the gates, for rows of inputs or, with a table of embeddings, for tokens.

    With a small vocabulary the scores of all its tokens are computed once.
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
        """A new tensor."""
        if self._table is not None:
            return self._table.index_select(0, inputs)
        if self._embeddings is not None:
            inputs = self._embeddings.index_select(0, inputs)
        return self._weight.plus(self._bias, inputs)
