"""The base class of recurrent layers, which process a sequence and pass on a state.

    outputs[t], state[t] = layer(inputs[t], state[t-1])

A cell is a layer that can also take a single step; a bidirectional layer cannot, because it reads the
future.

Axes: *batch any leading shape, B that shape flattened, T positions, D width of an input, H of an
output, M of a memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn


class CellState(NamedTuple):
    """The state of any recurrent layer. Only layers with memory, such as an LSTM, have `cell`."""

    hidden: Float[Tensor, "*batch H"]
    cell: Float[Tensor, "*batch M"] | None = None


def map_state(function: Callable[..., Tensor], *states: CellState) -> CellState:
    """Apply a function to the corresponding parts of several states."""
    hidden = function(*(state.hidden for state in states))
    if any(state.cell is None for state in states):
        return CellState(hidden)
    return CellState(hidden, function(*(state.cell for state in states)))


class RecurrentOutput(NamedTuple):
    """The result of a layer over a sequence: the output at each position, and the final state."""

    outputs: Float[Tensor, "B T H"]
    state: CellState


class AbstractLayer(nn.Module, ABC):
    """A recurrent layer over right-padded sequences; `RecurrentStack` converts any mask to right padding."""

    input_size: int
    output_size: int
    has_memory: bool

    @property
    def memory_size(self) -> int:
        """Return the width of the memory of a state; 0 for a layer without memory."""
        return self.output_size if self.has_memory else 0

    @abstractmethod
    def run(
        self,
        inputs: Float[Tensor, "B T D"],
        state: CellState,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> RecurrentOutput:
        """Process `inputs`, starting from `state`.

        Outputs are 0 after the end of a sequence, and the returned state is the state at its end. Inputs
        after the end are ignored.

        Args:
            inputs: A vector for each position.
            state: State before the first position.
            lengths: Number of real positions of each item; None if all positions are real.

        Returns:
            The output at each position and the final state.
        """

    def start(self, batch: Sequence[int]) -> CellState:
        """Return the initial state: 0.

        Args:
            batch: Sizes of the batch axes.

        Returns:
            A state of zeros.
        """
        like = next(self.parameters())
        memory = like.new_zeros(*batch, self.memory_size) if self.has_memory else None
        return CellState(like.new_zeros(*batch, self.output_size), memory)
