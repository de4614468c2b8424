"""Cells in the form of textbooks and lectures, which torch has no kernel for.

    logistic    h' = sigmoid( W x + U h + b )
    GRU         r = sigmoid( Wr x + Ur h + br ),   z = sigmoid( Wz x + Uz h + bz )
                n = tanh( Wn x + Un (r * h) + bn ),   h' = (1 - z) * n + z * h

The reset gate multiplies the state before the product; in `GRUCell`, it multiplies the product. Both cells run over a
sequence step by step, more slowly than the cells with fused kernels.

References: Elman 1990 (logistic units); Cho et al. 2014, eq. 5 to 8.

Axes: *batch any leading shape, D width of an input, H of a state.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ...batch_invariant import Linear, sigmoid
from ._cells import AbstractCell
from ._layers import CellState


@final
class LogisticCell(AbstractCell):
    """The simple recurrent network with logistic units, whose outputs are between 0 and 1.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the state.

    Examples:
        >>> cell = LogisticCell(3, 4)
        >>> after = cell(torch.randn(2, 3), cell.start([2])).hidden
        >>> bool(((after > 0) & (after < 1)).all())
        True
    """

    has_memory = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.from_input = Linear(input_size, hidden_size)
        self.from_state = Linear(hidden_size, hidden_size, bias=False)

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        return CellState(sigmoid(self.from_input(inputs) + self.from_state(state.hidden)))


@final
class TextbookGRUCell(AbstractCell):
    """The gated recurrent unit as published: the reset gate multiplies the state.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the state.

    Examples:
        >>> cell = TextbookGRUCell(3, 4)
        >>> cell(torch.randn(2, 3), cell.start([2])).hidden.shape
        torch.Size([2, 4])
    """

    has_memory = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.from_input = Linear(input_size, 3 * hidden_size)  # reset, update, new
        self.gates = Linear(hidden_size, 2 * hidden_size, bias=False)
        self.candidate = Linear(hidden_size, hidden_size, bias=False)

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        hidden, size = state.hidden, self.output_size
        of_gates, of_new = self.from_input(inputs).split([2 * size, size], -1)
        reset, update = sigmoid(of_gates + self.gates(hidden)).chunk(2, -1)
        new = torch.tanh(of_new + self.candidate(reset * hidden))
        return CellState((1 - update) * new + update * hidden)
