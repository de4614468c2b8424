"""Lie-access neural memory: an LSTM that appends vectors to a memory and finds them by keys that move in a plane.

A head is a key in the plane. At each step it goes toward a new key and is then shifted, which is an action of the group of
translations:

    k_t = g * new + (1 - g) * k_{t-1} + shift                    shift from -1 to 1 in both directions

    write   append (k_t, strength, v)                            with the key of the write head
    read    r = sum over i of w[i] v[i],   w[i] = (strength[i] / d[i]) / sum over i' of (strength[i'] / d[i'])
            d[i] = |k_t - key[i]|^2                              with the key of the read head

The same shift moves a head by the same vector anywhere in the plane, and two opposite shifts cancel. A step runs the
controller on the input and the vector read at the previous step, writes, then reads; the output is linear in controller
and read. Both heads start at the origin with an empty memory.

Axes: *batch any leading shape, D width of an input, H of the controller, R rows, W width of a vector in the memory.
Reference: Yang and Rush 2017, section 3 (translations of the plane, inverse squared distance).
"""

from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ...batch_invariant import Linear, sigmoid
from ...errors import ShapeError, ValueRangeError
from ._cells import AbstractCell, LSTMCell
from ._layers import CellState

_PLANE = 2  # coordinates of a key
_MOVE = 2 * _PLANE + 1  # numbers that move a head: new key, shift, gate
# Keeps the weight of a row at distance 0 finite, and 0 / 0 out of an empty memory.
_SMALL = 1e-3
_LEAST = 1e-12


class LieMemory(NamedTuple):
    """The memory of a state, from the newest row to the oldest, and the read head.

    Rows that are still empty have strength 0.
    """

    keys: Float[Tensor, "*batch R 2"]
    strengths: Float[Tensor, "*batch R"]
    values: Float[Tensor, "*batch R W"]
    read_key: Float[Tensor, "*batch 2"]
    weights: Float[Tensor, "*batch R"]


class _Parts(NamedTuple):
    """The memory part of a `CellState`, taken apart; a row is key, strength and vector."""

    hidden: Float[Tensor, "*batch H"]
    cell: Float[Tensor, "*batch H"]
    read: Float[Tensor, "*batch W"]
    read_key: Float[Tensor, "*batch 2"]
    write_key: Float[Tensor, "*batch 2"]
    rows: Float[Tensor, "*batch R 3+W"]


@final
class LieAccessCell(AbstractCell):
    """An LSTM with a memory whose keys are points of a plane, moved by translations (Lie-access neural memory).

    Each step appends a row. The number of rows is not a size of any parameter: `num_rows` can change after training. If
    a sequence has more steps than rows, the oldest rows are lost.

    Args:
        input_size: Width of the input of a step.
        hidden_size: Width of the controller and of the output.
        num_rows: Number of rows of the memory.
        row_size: Width of a vector in the memory.

    Raises:
        ValueRangeError: If the memory has no rows.

    Examples:
        >>> cell = LieAccessCell(3, 4, num_rows=8, row_size=5)
        >>> after = cell(torch.randn(2, 3), cell.start([2]))
        >>> after.hidden.shape, cell.memory(after).keys.shape
        (torch.Size([2, 4]), torch.Size([2, 8, 2]))
    """

    has_memory = True

    def __init__(
        self, input_size: int, hidden_size: int, num_rows: int = 256, row_size: int = 20
    ) -> None:
        super().__init__(input_size, hidden_size)
        if num_rows < 1:
            raise ValueRangeError(
                f"LieAccessCell: num_rows must be at least 1, got {num_rows}. Pass at least the number of steps."
            )
        self.num_rows, self.row_size = num_rows, row_size
        self.controller = LSTMCell(input_size + row_size, hidden_size)
        self.read = Linear(hidden_size, _MOVE)
        self.write = Linear(hidden_size, _MOVE + 1 + row_size)  # strength and vector
        self.output = Linear(hidden_size + row_size, hidden_size)

    @property
    @override
    def memory_size(self) -> int:
        return sum(self._sizes())

    def memory(self, state: CellState) -> LieMemory:
        """Return the memory and the key of the read head.

        Args:
            state: State before or after a step.

        Returns:
            Keys, strengths and vectors of the rows, the key of the read head, and its weights over the rows.
        """
        parts = self._parts(state)
        keys, strengths, values = self._columns(parts.rows)
        weights = _weights(parts.read_key, keys, strengths)
        return LieMemory(keys, strengths, values, parts.read_key, weights)

    @override
    def forward(self, inputs: Float[Tensor, "*batch D"], state: CellState) -> CellState:
        before = self._parts(state)
        hidden, cell = self.controller(
            torch.cat([inputs, before.read], -1), CellState(before.hidden, before.cell)
        )
        move, strength, value = self.write(hidden).split([_MOVE, 1, self.row_size], -1)
        write_key = _moved(before.write_key, move)
        read_key = _moved(before.read_key, self.read(hidden))
        row = torch.cat([write_key, sigmoid(strength), torch.tanh(value)], -1)
        rows = torch.cat([row.unsqueeze(-2), before.rows[..., :-1, :]], -2)
        keys, strengths, values = self._columns(rows)
        weights = _weights(read_key, keys, strengths)
        read = (weights.unsqueeze(-1) * values).sum(-2)
        assert cell is not None
        output = self.output(torch.cat([hidden, read], -1))
        parts = _Parts(hidden, cell, read, read_key, write_key, rows.flatten(-2))
        return CellState(output, torch.cat(parts, -1))

    def _sizes(self) -> tuple[int, ...]:
        """Return the widths of the parts of the memory of a state."""
        size, row = self.output_size, _PLANE + 1 + self.row_size
        return size, size, self.row_size, _PLANE, _PLANE, self.num_rows * row

    def _parts(self, state: CellState) -> _Parts:
        if state.cell is None or state.cell.shape[-1] != self.memory_size:
            width = None if state.cell is None else state.cell.shape[-1]
            raise ShapeError(
                f"LieAccessCell: expected a state with a memory of width {self.memory_size} (controller, read, keys "
                f"and rows), got {width}. Start from cell.start(batch)."
            )
        parts = state.cell.split(self._sizes(), -1)
        hidden, cell, read, read_key, write_key, rows = parts
        rows = rows.unflatten(-1, (self.num_rows, -1))
        return _Parts(hidden, cell, read, read_key, write_key, rows)

    def _columns(self, rows: Float[Tensor, "*batch R C"]) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, strengths and vectors of rows."""
        keys, strengths, values = rows.split([_PLANE, 1, self.row_size], -1)
        return keys, strengths.squeeze(-1).clamp(min=0.0), values  # a bridge can set any state


def _moved(key: Float[Tensor, "*batch 2"], move: Float[Tensor, "*batch M"]) -> Tensor:
    """Move a head toward a new key, then shift it."""
    new, shift, gate = move.split([_PLANE, _PLANE, 1], -1)
    gate = sigmoid(gate)
    return gate * new + (1 - gate) * key + torch.tanh(shift)


def _weights(
    key: Float[Tensor, "*batch 2"],
    keys: Float[Tensor, "*batch R 2"],
    strengths: Float[Tensor, "*batch R"],
) -> Float[Tensor, "*batch R"]:
    """Return the weights of rows: strength by squared distance, normalized; 0 if the memory is empty."""
    distances = (key.unsqueeze(-2) - keys).square().sum(-1)
    scores = strengths / (distances + _SMALL)
    return scores / (scores.sum(-1, keepdim=True) + _LEAST)
