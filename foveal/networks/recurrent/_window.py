"""A cell without recurrence: it reads the last inputs, and nothing before them.

    h_t = tanh( W [x_{t-k+1}; ...; x_{t-1}; x_t] + b ),   k the context

The memory of its state is the last k - 1 inputs, so it takes single steps like any cell, and a language model with it is
the n-gram network of Bengio et al. 2003 with n = k + 1. Before the first input, inputs are 0.

Axes: *batch any leading shape, B that shape flattened, T positions, D width of an input, H of an output.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from typing_extensions import override

from ...batch_invariant import Linear
from ...errors import ShapeError, ValueRangeError
from ...masking import mask_from_lengths
from ._cells import AbstractCell, at_end
from ._layers import CellState, RecurrentOutput


@final
class WindowCell(AbstractCell):
    """Computes its output from the last `context` inputs.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the output.
        context: Number of inputs that an output depends on.

    Raises:
        ValueRangeError: If `context` is less than 1.

    Examples:
        >>> cell = WindowCell(3, 4, context=2)
        >>> after = cell(torch.ones(1, 3), cell.start([1]))
        >>> after.hidden.shape, after.cell        # the memory is the last input
        (torch.Size([1, 4]), tensor([[1., 1., 1.]]))
    """

    has_memory = True

    def __init__(self, input_size: int, hidden_size: int, context: int = 4) -> None:
        super().__init__(input_size, hidden_size)
        if context < 1:
            raise ValueRangeError(
                f"WindowCell: context must be at least 1, the current input, got {context}. Pass 1 or more."
            )
        self.context = context
        self.window = Linear(context * input_size, hidden_size)

    @property
    @override
    def memory_size(self) -> int:
        return (self.context - 1) * self.input_size

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        window = torch.cat([self._seen(state), inputs], -1)
        return CellState(torch.tanh(self.window(window)), window[..., self.input_size :])

    @override
    def run(
        self,
        inputs: Float[Tensor, "B T D"],
        state: CellState,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> RecurrentOutput:
        """Compute all positions at once."""
        size, before = inputs.shape[1], self.context - 1
        padding = None if lengths is None else ~mask_from_lengths(lengths, size).unsqueeze(-1)
        if padding is not None:
            inputs = inputs.masked_fill(padding, 0.0)
        seen = self._seen(state).unflatten(-1, (before, self.input_size))
        row = torch.cat([seen, inputs], 1)
        windows = [row[:, start : start + size] for start in range(self.context)]
        outputs = torch.tanh(self.window(torch.cat(windows, -1)))
        if lengths is None or padding is None:
            last = CellState(outputs[:, -1], row[:, size:].flatten(1)) if size else state
            return RecurrentOutput(outputs, last)
        outputs = outputs.masked_fill(padding, 0.0)
        ends = lengths.unsqueeze(-1) + torch.arange(before, device=lengths.device)
        memory = row.gather(1, ends.unsqueeze(-1).expand(-1, -1, self.input_size)).flatten(1)
        return RecurrentOutput(outputs, CellState(at_end(outputs, lengths, state), memory))

    def _seen(self, state: CellState) -> Float[Tensor, "*batch M"]:
        if state.cell is None or state.cell.shape[-1] != self.memory_size:
            width = None if state.cell is None else state.cell.shape[-1]
            raise ShapeError(
                f"WindowCell: expected a state whose memory is the last {self.context - 1} inputs, of width "
                f"{self.memory_size} in all, got {width}. Start from cell.start(batch)."
            )
        return state.cell
