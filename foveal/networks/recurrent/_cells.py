"""Recurrent cells: one step of a recurrent network, and a whole sequence on torch's fused kernels.

The parameters belong to torch's module, `cell.fused`, with its names and its layout; `forward` and `run`
share them.

Axes: *batch any leading shape, B that shape flattened, T positions, D width of an input, H of a
state, G of the scores of all gates.
"""

from abc import abstractmethod
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from typing_extensions import override

from ...batch_invariant import linear, sigmoid
from ...errors import ShapeError
from ...masking import mask_from_lengths
from ._layers import AbstractLayer, CellState, RecurrentOutput, map_state

# A gate with this score is exactly 1, and with its negative exactly 0, for any value added to the score.
_SHUT = 1e4
# In half precision, the kernel takes more than twice the time if the input width is not a multiple of this.
_COLUMNS = 8


class AbstractCell(AbstractLayer):
    """A recurrent cell: subclasses implement one step, `run` repeats it, and fused cells override `run`.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the state and of the output.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.output_size = input_size, hidden_size

    @abstractmethod
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        """Compute the state after one more input.

        Args:
            inputs: One vector for each item.
            state: State before the step.

        Returns:
            The new state; its `hidden` is the output of the step.
        """

    @override
    def run(
        self,
        inputs: Float[Tensor, "B T D"],
        state: CellState,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> RecurrentOutput:
        outputs = []
        for t in range(inputs.shape[1]):
            if lengths is None:
                state = self(inputs[:, t], state)
                outputs.append(state.hidden)
            else:
                real = (t < lengths).unsqueeze(-1)
                after = self(inputs[:, t].masked_fill(~real, 0.0), state)
                state = carry(real, after, state)
                outputs.append(after.hidden.masked_fill(~real, 0.0))
        return RecurrentOutput(torch.stack(outputs, 1), state)


class CellWeights(NamedTuple):
    """The parameters of a fused cell; the G rows are the gates in order."""

    input: Float[Tensor, "G D"]
    hidden: Float[Tensor, "G H"]
    input_bias: Float[Tensor, " G"]
    hidden_bias: Float[Tensor, " G"]


class AbstractFusedCell(AbstractCell):
    """A cell with torch's parameters, which computes the scores of all gates at once.

        from_input = W x + b,   from_state = U h + c

    A subclass computes the new state from the scores. The two terms are separate, because a caller that
    knows many inputs in advance can compute `from_input` for all of them together.
    """

    fused: nn.RNNBase

    @abstractmethod
    def update(
        self,
        from_input: Float[Tensor, "*batch G"],
        from_state: Float[Tensor, "*batch G"],
        state: CellState,
    ) -> CellState:
        """Compute the new state from the scores of an input."""

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        _check_width(self, inputs)
        weights = self.weights
        return self.update(
            linear(inputs, weights.input, weights.input_bias), self.from_state(state), state
        )

    def from_state(self, state: CellState) -> Float[Tensor, "*batch G"]:
        """Compute U h + c."""
        weights = self.weights
        return linear(state.hidden, weights.hidden, weights.hidden_bias)

    @property
    def weights(self) -> CellWeights:
        """Return W, U, b and c."""
        return CellWeights(*self.fused.all_weights[0])


def carry(real: Tensor, after: CellState, before: CellState) -> CellState:
    """Select the new state for items with a real step, the old state for the others."""
    return map_state(lambda new, old: torch.where(real, new, old), after, before)


@final
class ElmanCell(AbstractFusedCell):
    """The simple recurrent network (Elman 1990).

        h' = tanh( W x + b + U h + c )

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the state.

    Examples:
        >>> cell = ElmanCell(3, 4)
        >>> cell(torch.randn(2, 3), cell.start([2])).hidden.shape
        torch.Size([2, 4])
    """

    has_memory = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.fused = nn.RNN(input_size, hidden_size, batch_first=True)

    @override
    def update(self, from_input: Tensor, from_state: Tensor, state: CellState) -> CellState:
        return CellState(torch.tanh(from_input + from_state))

    @override
    def run(
        self, inputs: Tensor, state: CellState, lengths: Tensor | None = None
    ) -> RecurrentOutput:
        _check_width(self, inputs)
        return _run(self.fused, inputs, state, lengths)


@final
class GRUCell(AbstractFusedCell):
    """The gated recurrent unit (Cho et al. 2014, eq. 5 to 8), as implemented by torch and cuDNN.

    In this form, the reset gate multiplies U h + c instead of h.

        r = sigmoid( Wr x + Ur h ),   z = sigmoid( Wz x + Uz h )         biases omitted
        n = tanh( Wn x + r * (Un h) )
        h' = (1 - z) * n + z * h

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the state.

    Examples:
        >>> cell = GRUCell(3, 4)
        >>> cell(torch.randn(2, 3), cell.start([2])).hidden.shape
        torch.Size([2, 4])
    """

    has_memory = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.fused = nn.GRU(input_size, hidden_size, batch_first=True)

    @override
    def update(self, from_input: Tensor, from_state: Tensor, state: CellState) -> CellState:
        reset_x, update_x, new_x = from_input.chunk(3, -1)
        reset_h, update_h, new_h = from_state.chunk(3, -1)
        reset, update = sigmoid(reset_x + reset_h), sigmoid(update_x + update_h)
        new = torch.tanh(new_x + reset * new_h)
        return CellState((1 - update) * new + update * state.hidden)

    @override
    def run(
        self, inputs: Tensor, state: CellState, lengths: Tensor | None = None
    ) -> RecurrentOutput:
        _check_width(self, inputs)
        return _run(self.fused, inputs, state, lengths)


@final
class LSTMCell(AbstractFusedCell):
    """Long short-term memory (Hochreiter and Schmidhuber 1997; with forget gates, Gers et al. 2000).

        i, f, o = sigmoid( W x + U h + b )       input, forget and output gates
        g       = tanh( Wg x + Ug h + bg )       candidate values
        c' = f * c + i * g
        h' = o * tanh(c')

    With i = 0, f = 1 the cell keeps its memory; 1, 1 adds to it; 0, 0 erases it; 1, 0 overwrites it. The
    forget gates start open, with a bias of 1 (Jozefowicz et al. 2015, section 3.1).

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the hidden vector and of the memory.

    Examples:
        >>> cell = LSTMCell(3, 4)
        >>> after = cell(torch.randn(2, 3), cell.start([2]))
        >>> after.hidden.shape, after.cell.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    has_memory = True

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        self.fused = nn.LSTM(input_size, hidden_size, batch_first=True)
        self.init_forget_bias(1.0)

    @torch.no_grad()
    def init_forget_bias(self, bias: float) -> None:
        """Set the bias of every forget gate.

        Args:
            bias: Score of a forget gate for an input and a state of 0; larger values keep more of the memory.
        """
        _, _, bias_input, bias_hidden = self.fused.all_weights[0]
        gates = slice(self.output_size, 2 * self.output_size)
        bias_input[gates] = bias
        bias_hidden[gates] = 0.0

    @override
    def update(self, from_input: Tensor, from_state: Tensor, state: CellState) -> CellState:
        i, f, g, o = (from_input + from_state).chunk(4, -1)
        memory = torch.sigmoid(f) * _memory(state) + torch.sigmoid(i) * torch.tanh(g)
        return CellState(torch.sigmoid(o) * torch.tanh(memory), memory)

    @override
    def run(
        self, inputs: Tensor, state: CellState, lengths: Tensor | None = None
    ) -> RecurrentOutput:
        _check_width(self, inputs)
        first = state.hidden.unsqueeze(0), _memory(state).unsqueeze(0)
        if lengths is None:
            outputs, (hidden, memory) = self.fused(inputs, first)
            return RecurrentOutput(outputs, CellState(hidden[0], memory[0]))
        # The kernel returns only the memory of the last step. An extra input, 1 after the end of a
        # sequence, closes the input gates and opens the forget gates, which keeps the memory unchanged.
        # Packed sequences would also work, but train up to five times slower on a CPU.
        real = mask_from_lengths(lengths, inputs.shape[1]).unsqueeze(-1)
        more = _COLUMNS - self.input_size % _COLUMNS
        ended = (~real).to(inputs.dtype).expand(-1, -1, more)
        inputs = torch.cat([inputs.masked_fill(~real, 0.0), ended], -1)
        weight, *others = self.fused.all_weights[0]
        gates = weight.new_tensor([-_SHUT, _SHUT, 0.0, 0.0]) / more
        columns = gates.repeat_interleave(self.output_size).unsqueeze(-1).expand(-1, more)
        weights = [torch.cat([weight, columns], -1), *others]
        outputs, _, memory = torch.lstm(
            inputs, first, weights, True, 1, 0.0, self.training, False, True
        )
        outputs = outputs.masked_fill(~real, 0.0)
        return RecurrentOutput(outputs, CellState(at_end(outputs, lengths, state), memory[0]))


def _run(
    fused: nn.RNNBase, inputs: Tensor, state: CellState, lengths: Tensor | None
) -> RecurrentOutput:
    """Run a cell without memory over a sequence: its final state is its last output."""
    first = state.hidden.unsqueeze(0)
    if lengths is None:
        outputs, hidden = fused(inputs, first)
        return RecurrentOutput(outputs, CellState(hidden[0]))
    real = mask_from_lengths(lengths, inputs.shape[1]).unsqueeze(-1)
    outputs, _ = fused(inputs.masked_fill(~real, 0.0), first)
    outputs = outputs.masked_fill(~real, 0.0)
    return RecurrentOutput(outputs, CellState(at_end(outputs, lengths, state)))


def at_end(outputs: Tensor, lengths: Tensor, first: CellState) -> Tensor:
    """Return the output at the last real position, or the initial state if there is none."""
    index = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, outputs.shape[-1])
    last = outputs.gather(1, index).squeeze(1)
    return torch.where((lengths > 0).unsqueeze(-1), last, first.hidden)


def _memory(state: CellState) -> Tensor:
    if state.cell is None:
        raise ShapeError(
            "LSTMCell: expected a state with a memory cell and a hidden vector, got one without "
            "memory. Start from cell.start(batch), or pass CellState(hidden, memory)."
        )
    return state.cell


def _check_width(cell: AbstractCell, inputs: Tensor) -> None:
    if inputs.shape[-1] != cell.input_size:
        raise ShapeError(
            f"{type(cell).__name__}: inputs must have width {cell.input_size}, "
            f"got {inputs.shape[-1]}. Build it with input_size={inputs.shape[-1]}, "
            f"or project the inputs first."
        )
