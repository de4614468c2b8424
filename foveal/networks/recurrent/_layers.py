"""What a recurrent layer is: it reads a sequence and hands on a state.

    outputs[t], state[t] = layer(inputs[t], state[t-1])

A cell is a layer that can also take one step; a bidirectional layer, which reads the future, is
one that cannot.

Axes: *batch any leading shape, B that shape flattened, T positions, D width of an input, H of a
state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn


class CellState(NamedTuple):
    """The state of any recurrent layer. Only an LSTM has `cell`."""

    hidden: Float[Tensor, "*batch H"]
    cell: Float[Tensor, "*batch H"] | None = None


def map_state(function: Callable[..., Tensor], *states: CellState) -> CellState:
    """Each part of a state from the same part of others."""
    hidden = function(*(state.hidden for state in states))
    if any(state.cell is None for state in states):
        return CellState(hidden)
    return CellState(hidden, function(*(state.cell for state in states)))


class RecurrentOutput(NamedTuple):
    """A layer run over a sequence: what it gave at each position, and its state at the end."""

    outputs: Float[Tensor, "B T H"]
    state: CellState


class AbstractLayer(nn.Module, ABC):
    """A recurrent layer over right-padded sequences; `RecurrentStack` brings any mask to that."""

    input_size: int
    output_size: int
    has_memory: bool

    @abstractmethod
    def run(
        self,
        inputs: Float[Tensor, "B T D"],
        state: CellState,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> RecurrentOutput:
        """Read `inputs` from `state` on; outputs are 0 after the end of a sequence, and the state
        is the one at its end. What stands after the end changes nothing.
        """

    def start(self, batch: Sequence[int]) -> CellState:
        """The state before anything has been read: 0."""
        zeros = next(self.parameters()).new_zeros(*batch, self.output_size)
        return CellState(zeros, zeros if self.has_memory else None)
