"""A bidirectional layer: the output at every position depends on all positions before and after it.

    output[t] = [ forward[t]; backward[t] ]

Reference: Schuster and Paliwal 1997.

Axes: B batch, T positions, D width of an input, H of a cell's state.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...errors import ShapeError
from ._cells import AbstractCell
from ._layers import AbstractLayer, CellState, RecurrentOutput, map_state


@final
class Bidirectional(AbstractLayer):
    """Runs two cells over one sequence; outputs and states are concatenated, forward first.

    Args:
        forward_cell: Reads the sequence from its start.
        backward_cell: Reads the sequence from its end.

    Raises:
        ShapeError: If the cells read inputs of different widths.
    """

    def __init__(self, forward_cell: AbstractCell, backward_cell: AbstractCell) -> None:
        super().__init__()
        if forward_cell.input_size != backward_cell.input_size:
            raise ShapeError(
                f"Bidirectional: both cells must read the same inputs, got input_size "
                f"{forward_cell.input_size} and {backward_cell.input_size}. Make them equal."
            )
        self.forward_cell, self.backward_cell = forward_cell, backward_cell
        self.input_size = forward_cell.input_size
        self.output_size = forward_cell.output_size + backward_cell.output_size
        self.has_memory = forward_cell.has_memory

    @property
    @override
    def memory_size(self) -> int:
        return self.forward_cell.memory_size + self.backward_cell.memory_size

    @override
    def run(
        self,
        inputs: Float[Tensor, "B T D"],
        state: CellState,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> RecurrentOutput:
        size, memory_size = self.forward_cell.output_size, self.forward_cell.memory_size
        first, second = CellState(state.hidden[..., :size]), CellState(state.hidden[..., size:])
        if state.cell is not None:
            first = first._replace(cell=state.cell[..., :memory_size])
            second = second._replace(cell=state.cell[..., memory_size:])
        ahead = self.forward_cell.run(inputs, first, lengths)
        back = self.backward_cell.run(reverse(inputs, lengths), second, lengths)
        outputs = torch.cat([ahead.outputs, reverse(back.outputs, lengths)], -1)
        last = map_state(lambda *ends: torch.cat(ends, -1), ahead.state, back.state)
        return RecurrentOutput(outputs, last)


def reverse(
    values: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
) -> Float[Tensor, "B T D"]:
    """Reverse the real positions; positions after the end do not change.

    Args:
        values: A vector for each position.
        lengths: Number of real positions of each item; None if all positions are real.

    Returns:
        The values in reverse order up to the length of each item.

    Examples:
        >>> reverse(torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([2])).flatten()
        tensor([2., 1., 9.])
    """
    if lengths is None:
        return values.flip(1)
    place = torch.arange(values.shape[1], device=values.device)
    end = lengths.unsqueeze(-1)
    index = torch.where(place < end, end - 1 - place, place)
    return values.gather(1, index.unsqueeze(-1).expand_as(values))
