"""Deep cell: layers between the input and the state, inside the transition, and between the state and the output.

    z = tanh layers of x                                                     `input_layers`
    a_1 = tanh( W z + U s ),   a_l = tanh( W_l a_{l-1} )                     `transition_layers`
    s' = a_L; with a shortcut, a_L = tanh( W_L a_{L-1} + U_L s )
    h = tanh layers of s'                                                    `output_layers`

A stack of recurrent layers has several states. This cell has one state and several layers around it. The shortcut
keeps the path of the gradient through time short, which a deep transition makes L times longer.

Reference: Pascanu et al. 2014, How to construct deep recurrent neural networks.

Axes: *batch any leading shape, D width of an input, H of a state.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ...batch_invariant import Linear
from ...errors import ShapeError, ValueRangeError
from ._cells import AbstractCell
from ._layers import CellState


@final
class DeepCell(AbstractCell):
    """A recurrent cell with several layers in each of its three functions.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the state, of the output and of all layers.
        input_layers: Number of layers between the input and the transition.
        transition_layers: Number of layers from one state to the next.
        output_layers: Number of layers between the state and the output; the state is then the memory of the cell.
        shortcut: The last layer of a transition reads the previous state too.

    Raises:
        ValueRangeError: If `transition_layers` is less than 1, or another number of layers is negative.

    Examples:
        >>> cell = DeepCell(3, 4, transition_layers=2, output_layers=1)
        >>> after = cell(torch.randn(2, 3), cell.start([2]))
        >>> after.hidden.shape, after.cell.shape        # the output and the state
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        input_layers: int = 0,
        transition_layers: int = 2,
        output_layers: int = 0,
        shortcut: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size)
        if transition_layers < 1 or min(input_layers, output_layers) < 0:
            raise ValueRangeError(
                f"DeepCell: expected at least 1 transition layer and no negative numbers of layers, got "
                f"transition_layers={transition_layers}, input_layers={input_layers}, output_layers={output_layers}."
            )
        self.has_memory = output_layers > 0
        widths = [input_size, *[hidden_size] * input_layers]
        self.input_layers = nn.ModuleList(Linear(width, hidden_size) for width in widths[:-1])
        self.from_input = Linear(widths[-1], hidden_size)
        self.from_state = Linear(hidden_size, hidden_size, bias=False)
        self.transition = nn.ModuleList(
            Linear(hidden_size, hidden_size) for _ in range(transition_layers - 1)
        )
        has_shortcut = shortcut and transition_layers > 1
        self.shortcut = Linear(hidden_size, hidden_size, bias=False) if has_shortcut else None
        self.output_layers = nn.ModuleList(
            Linear(hidden_size, hidden_size) for _ in range(output_layers)
        )

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        before = self._state(state)
        for layer in self.input_layers:
            inputs = torch.tanh(layer(inputs))
        scores = self.from_input(inputs) + self.from_state(before)
        for layer in self.transition:
            scores = layer(torch.tanh(scores))
        if self.shortcut is not None:
            scores = scores + self.shortcut(before)
        after = output = torch.tanh(scores)
        for layer in self.output_layers:
            output = torch.tanh(layer(output))
        return CellState(output, after if self.has_memory else None)

    def _state(self, state: CellState) -> Float[Tensor, "*batch H"]:
        if not self.has_memory:
            return state.hidden
        if state.cell is None:
            raise ShapeError(
                "DeepCell: with output layers, the state of the cell is its memory, got a state without memory. Start "
                "from cell.start(batch), or pass CellState(output, state)."
            )
        return state.cell
