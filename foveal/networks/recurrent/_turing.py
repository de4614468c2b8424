"""A Neural Turing Machine: an LSTM that writes to a memory of rows and reads from it.

A head addresses the rows with weights w, from its previous weights and from the controller:

    c = softmax( strength * cosine(key, M[i]) over i )                by content
    g = gate * c + (1 - gate) * w_{t-1}                               interpolation
    m[i] = shift[-1] g[i + 1] + shift[0] g[i] + shift[1] g[i - 1]     shift on the ring of rows
    w[i] = m[i]^sharpness / sum over i' of m[i']^sharpness

    write   M[i] = M[i] * (1 - w[i] erase) + w[i] add
    read    r = sum over i of w[i] M[i]

A step runs the controller on the input and the vectors read at the previous step, writes, then reads; the output is
linear in controller and reads. All heads start at row 0 of a memory of zeros.

Axes: *batch any leading shape, D width of an input, H of the controller, R rows, W width of a row, K heads, P numbers
that address a head.
Reference: Graves et al. 2014, eq. 1 to 9.
"""

from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, softplus
from typing_extensions import override

from ...batch_invariant import Linear, sigmoid
from ...errors import ShapeError, ValueRangeError
from ._cells import AbstractCell, LSTMCell
from ._layers import CellState

# Keeps logarithms and cosines finite.
_SMALL = 1e-8
_SHIFTS = (-1, 0, 1)


class Heads(NamedTuple):
    """The memory of a state, and the weights of the heads over its rows."""

    memory: Float[Tensor, "*batch R W"]
    read: Float[Tensor, "*batch K R"]
    write: Float[Tensor, "*batch K R"]


class _Parts(NamedTuple):
    """The memory part of a `CellState`, taken apart."""

    hidden: Float[Tensor, "*batch H"]
    cell: Float[Tensor, "*batch H"]
    reads: Float[Tensor, "*batch KW"]
    heads: Heads


@final
class NTMCell(AbstractCell):
    """An LSTM with an external memory that it reads and writes (Neural Turing Machine).

    The number of rows is not a size of any parameter: `num_rows` can change after training.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the controller and of the output.
        num_rows: Number of rows of the memory, at least 3.
        row_size: Width of a row.
        num_heads: Number of read heads, and of write heads.

    Raises:
        ValueRangeError: If the memory has fewer than 3 rows: the neighbors of a row must differ.

    Examples:
        >>> cell = NTMCell(3, 4, num_rows=8, row_size=5)
        >>> after = cell(torch.randn(2, 3), cell.start([2]))
        >>> after.hidden.shape, cell.heads(after).read.shape
        (torch.Size([2, 4]), torch.Size([2, 1, 8]))
    """

    has_memory = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_rows: int = 128,
        row_size: int = 20,
        num_heads: int = 1,
    ) -> None:
        super().__init__(input_size, hidden_size)
        if num_rows < len(_SHIFTS):
            raise ValueRangeError(
                f"NTMCell: num_rows must be at least {len(_SHIFTS)}, so that the neighbors of a row differ, got "
                f"{num_rows}. Pass more rows than a sequence has tokens."
            )
        self.num_rows, self.row_size, self.num_heads = num_rows, row_size, num_heads
        self.controller = LSTMCell(input_size + num_heads * row_size, hidden_size)
        address_size = row_size + 3 + len(_SHIFTS)  # key; strength, gate and sharpness; shifts
        self.read = Linear(hidden_size, num_heads * address_size)
        self.write = Linear(hidden_size, num_heads * (address_size + 2 * row_size))
        self.output = Linear(hidden_size + num_heads * row_size, hidden_size)

    @property
    @override
    def memory_size(self) -> int:
        return sum(self._sizes())

    def heads(self, state: CellState) -> Heads:
        """Return the memory and the weights of all heads.

        Args:
            state: State before or after a step.

        Returns:
            The rows of the memory, and the weights of the read and write heads over them.
        """
        return self._parts(state).heads

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        before = self._parts(state)
        hidden, cell = self.controller(
            torch.cat([inputs, before.reads], -1), CellState(before.hidden, before.cell)
        )
        memory, read, write = before.heads
        writing = self.write(hidden).unflatten(-1, (self.num_heads, -1))
        address, erase, add = writing.split(
            [writing.shape[-1] - 2 * self.row_size, self.row_size, self.row_size], -1
        )
        write = _addressed(address, memory, write)
        memory = _written(memory, write, sigmoid(erase), torch.tanh(add))
        read = _addressed(self.read(hidden).unflatten(-1, (self.num_heads, -1)), memory, read)
        reads = (read.unsqueeze(-1) * memory.unsqueeze(-3)).sum(-2).flatten(-2)
        assert cell is not None
        output = self.output(torch.cat([hidden, reads], -1))
        return CellState(
            output, self._joined(_Parts(hidden, cell, reads, Heads(memory, read, write)))
        )

    def _sizes(self) -> tuple[int, ...]:
        """Return the widths of the parts of the memory of a state."""
        size, heads, rows = self.output_size, self.num_heads, self.num_rows
        return size, size, heads * self.row_size, rows * self.row_size, heads * rows, heads * rows

    def _parts(self, state: CellState) -> _Parts:
        """Take the memory of a state apart; it holds the difference of all weights from row 0, so 0 is the start."""
        if state.cell is None or state.cell.shape[-1] != self.memory_size:
            width = None if state.cell is None else state.cell.shape[-1]
            raise ShapeError(
                f"NTMCell: expected a state with a memory of width {self.memory_size} (controller, reads, rows and "
                f"weights), got {width}. Start from cell.start(batch)."
            )
        hidden, cell, reads, rows, read, write = state.cell.split(self._sizes(), -1)
        memory = rows.unflatten(-1, (self.num_rows, self.row_size))
        first = pad(rows.new_ones(1), (0, self.num_rows - 1))
        changes = (part.unflatten(-1, (self.num_heads, -1)) for part in (read, write))
        # A bridge can set any state, hence also weights below 0.
        weights = ((change + first).clamp(min=0.0) for change in changes)
        return _Parts(hidden, cell, reads, Heads(memory, *weights))

    def _joined(self, parts: _Parts) -> Float[Tensor, "*batch M"]:
        """Invert `_parts`."""
        hidden, cell, reads, (memory, *weights) = parts
        first = pad(memory.new_ones(1), (0, self.num_rows - 1))
        changes = ((each - first).flatten(-2) for each in weights)
        return torch.cat([hidden, cell, reads, memory.flatten(-2), *changes], -1)


def _addressed(
    address: Float[Tensor, "*batch K P"],
    memory: Float[Tensor, "*batch R W"],
    before: Float[Tensor, "*batch K R"],
) -> Float[Tensor, "*batch K R"]:
    """Compute the weights of the heads from what the controller asks for and from their previous weights."""
    key, strength, gate, sharpness, shifts = address.split(
        [memory.shape[-1], 1, 1, 1, len(_SHIFTS)], -1
    )
    products = (key.unsqueeze(-2) * memory.unsqueeze(-3)).sum(-1)
    lengths = _length(key).unsqueeze(-1) * _length(memory).unsqueeze(-2)
    content = (softplus(strength) * products / (lengths + _SMALL)).softmax(-1)
    gate = sigmoid(gate)
    weights = gate * content + (1 - gate) * before
    parts = shifts.softmax(-1).split(1, -1)
    moved = torch.stack(
        [part * weights.roll(j, -1) for j, part in zip(_SHIFTS, parts, strict=True)]
    )
    return ((1 + softplus(sharpness)) * (moved.sum(0) + _SMALL).log()).softmax(-1)


def _written(
    memory: Float[Tensor, "*batch R W"],
    weights: Float[Tensor, "*batch K R"],
    erase: Float[Tensor, "*batch K W"],
    add: Float[Tensor, "*batch K W"],
) -> Float[Tensor, "*batch R W"]:
    """Erase with all heads, then add with all heads."""
    weights = weights.unsqueeze(-1)
    kept = (1 - weights * erase.unsqueeze(-2)).prod(-3)
    return memory * kept + (weights * add.unsqueeze(-2)).sum(-3)


def _length(vectors: Float[Tensor, "*batch W"]) -> Float[Tensor, "*batch"]:
    """Return the Euclidean norm, which has a gradient at 0."""
    return (vectors.square().sum(-1) + _SMALL**2).sqrt()
