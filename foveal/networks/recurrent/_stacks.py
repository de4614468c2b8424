"""Stacks of recurrent layers, over sequences with any mask.

    plain      x[l] = layer_l( x[l-1] )                     Graves 2013, section 2
    residual   x[l] = x[l-1] + layer_l( x[l-1] )            He et al. 2016; Wu et al. 2016, section 3.1
    skip       x[l] = layer_l( [x[l-1]; x[0]] )             Graves 2013: every layer reads the input

Dropout is optional between layers (Zaremba et al. 2014), never along time. A masked position is skipped:
the state does not change and the output is 0.

Axes: *batch any leading shape, T positions, D width of an input, H of an output.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ...errors import ShapeError, ValueRangeError
from ...masking import mask_from_lengths
from .._compaction import arranged, to_front, to_places
from .._dropout import Dropout
from ._bidirectional import Bidirectional
from ._cells import AbstractCell, LSTMCell
from ._layers import AbstractLayer, CellState, map_state

StackState = tuple[CellState, ...]  # one for each layer, lowest first


class StackOutput(NamedTuple):
    """The result of a stack over sequences: the outputs of its top layer, and the final states."""

    outputs: Float[Tensor, "*batch T H"]
    state: StackState


class StackStep(NamedTuple):
    """One step of a stack: the output of its top layer, and the new states."""

    output: Float[Tensor, "*batch H"]
    state: StackState


@final
class RecurrentStack(nn.Module):
    """A stack of layers, lowest first; `recurrent_stack` builds common stacks.

    A residual connection skips every layer whose input and output have the same width.

    Args:
        layers: Cells or bidirectional layers, lowest first; each reads the output of the layer below.
        residual: Add a residual connection around every layer whose input and output have the same width.
        skip: Append the input of the stack to the input of every layer.
        dropout: Dropout probability between layers.

    Raises:
        ShapeError: If the input width of a layer is not the width of the values that it reads.
    """

    def __init__(
        self,
        layers: Sequence[AbstractLayer],
        *,
        residual: bool = False,
        skip: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.input_size, self.output_size = layers[0].input_size, layers[-1].output_size
        self.residual, self.skip = residual, skip
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(dropout)
        for number in range(1, len(layers)):
            expected = layers[number - 1].output_size + (self.input_size if skip else 0)
            if layers[number].input_size != expected:
                raise ShapeError(
                    f"RecurrentStack: layer {number} must have input_size {expected}, "
                    f"got {layers[number].input_size}. It reads the layer below"
                    f"{' and the input of the stack' if skip else ''}."
                )

    def start(self, batch: Sequence[int]) -> StackState:
        """Return the initial states: 0.

        Args:
            batch: Sizes of the batch axes.

        Returns:
            A state of zeros for each layer.
        """
        return tuple(layer.start(batch) for layer in self.layers_in_order())

    def forward(
        self,
        inputs: Float[Tensor, "*batch T D"],
        mask: Bool[Tensor, "*batch T"] | None = None,
        state: StackState | None = None,
    ) -> StackOutput:
        """Process whole sequences, starting from `state`.

        Args:
            inputs: A vector for each position.
            mask: True on real positions, with any pattern of padding; None if all positions are real.
            state: State before the first position; defaults to zeros.

        Returns:
            The outputs of the top layer, 0 on padding, and the final state of each layer.
        """
        self._check_width(inputs)
        batch, (size, width) = inputs.shape[:-2], inputs.shape[-2:]
        first = _shaped(self.start(batch) if state is None else state, (-1,))
        below, lengths, moved = inputs.reshape(-1, size, width), None, None
        if mask is not None:
            lengths, moved = arranged(mask.expand(*batch, size).reshape(-1, size))
            below = below if moved is None else to_front(below, moved)
        if lengths is not None:
            # From here on, padding is 0 in every layer, so residual connections add 0 there.
            below = below.masked_fill(~mask_from_lengths(lengths, size).unsqueeze(-1), 0.0)
        bottom, last = below, []
        for number, layer in enumerate(self.layers_in_order()):
            ran = layer.run(self._reads(number, below, bottom), first[number], lengths)
            below = self._joins(number, below, ran.outputs)
            last.append(ran.state)
        if moved is not None:
            below = to_places(below, moved)
        return StackOutput(below.unflatten(0, batch) if batch else below[0], _shaped(last, batch))

    def step(self, inputs: Float[Tensor, "*batch D"], state: StackState) -> StackStep:
        """Process one more position.

        Args:
            inputs: One vector for each item.
            state: State before the step.

        Returns:
            The output of the top layer and the new state of each layer.
        """
        self._check_width(inputs)
        return self.climb(self.cells_in_order()[0](inputs, state[0]), state, inputs)

    def climb(
        self,
        lowest: CellState,
        state: StackState,
        inputs: Float[Tensor, "*batch D"] | None = None,
    ) -> StackStep:
        """Run the layers above the lowest, whose step is done, starting from `state`.

        Only residual and skip connections need the inputs.

        Args:
            lowest: New state of the lowest layer.
            state: State of all layers before the step.
            inputs: Input of the stack at this step.

        Returns:
            The output of the top layer and the new state of each layer.
        """
        below, after = self._joins(0, inputs, lowest.hidden), [lowest]
        for number, cell in enumerate(self.cells_in_order()[1:], 1):
            following = cell(self._reads(number, below, inputs), state[number])
            below = self._joins(number, below, following.hidden)
            after.append(following)
        return StackStep(below, tuple(after))

    def cells_in_order(self) -> list[AbstractCell]:
        """Return the layers of a stack that can step.

        Returns:
            The cells, lowest first.

        Raises:
            ValueRangeError: If a layer is bidirectional.
        """
        cells = []
        for number, layer in enumerate(self.layers):
            if not isinstance(layer, AbstractCell):
                raise ValueRangeError(
                    f"RecurrentStack: step needs layers that read forward only, got a "
                    f"{type(layer).__name__} as layer {number}. Run it over whole sequences, "
                    f"or build the stack with bidirectional=False."
                )
            cells.append(layer)
        return cells

    def layers_in_order(self) -> list[AbstractLayer]:
        """Return the layers.

        Returns:
            The layers, lowest first.
        """
        layers = []
        for layer in self.layers:
            assert isinstance(layer, AbstractLayer)
            layers.append(layer)
        return layers

    def _reads(self, number: int, below: Tensor, bottom: Tensor | None) -> Tensor:
        """Return the input of a layer: the output of the layer below and, with skips, the stack's input."""
        if not self.skip or number == 0:
            return below
        assert bottom is not None
        return torch.cat([below, bottom], -1)

    def _joins(self, number: int, below: Tensor | None, outputs: Tensor) -> Tensor:
        """Return the output of a layer, with the residual connection if there is one."""
        if number < len(self.layers) - 1:
            outputs = self.dropout(outputs)
        if not self.residual:
            return outputs
        assert below is not None
        return below + outputs if below.shape[-1] == outputs.shape[-1] else outputs

    def _check_width(self, inputs: Tensor) -> None:
        if inputs.shape[-1] != self.input_size:
            raise ShapeError(
                f"RecurrentStack: inputs must have width {self.input_size}, "
                f"got {inputs.shape[-1]}. Build it with input_size={inputs.shape[-1]}, "
                f"or project the inputs first."
            )


def recurrent_stack(
    input_size: int,
    hidden_size: int,
    *,
    cell: Callable[[int, int], AbstractCell] = LSTMCell,
    num_layers: int = 1,
    bidirectional: bool = False,
    residual: bool = False,
    skip: bool = False,
    dropout: float = 0.0,
) -> RecurrentStack:
    """Build a stack of layers of one kind.

    Args:
        input_size: Width of the input of a position.
        hidden_size: Width of a layer's state; the output of a bidirectional layer is twice as wide.
        cell: Builds a cell from the widths of its input and state.
        num_layers: Number of layers.
        bidirectional: Read the sequence from both ends.
        residual: Add a residual connection around every layer whose input and output have the same width.
        skip: Append the input of the stack to the input of every layer.
        dropout: Dropout probability between layers.

    Returns:
        A stack with new weights.

    Raises:
        ValueRangeError: If `num_layers` is less than 1.

    Examples:
        >>> stack = recurrent_stack(3, 4, num_layers=2, bidirectional=True)
        >>> stack(torch.randn(2, 5, 3)).outputs.shape
        torch.Size([2, 5, 8])
    """
    if num_layers < 1:
        raise ValueRangeError(
            f"recurrent_stack: num_layers must be at least 1, got {num_layers}. Pass 1 for one layer."
        )
    layers: list[AbstractLayer] = []
    for number in range(num_layers):
        width = input_size if number == 0 else layers[-1].output_size
        if skip and number > 0:
            width += input_size
        if bidirectional:
            layers.append(Bidirectional(cell(width, hidden_size), cell(width, hidden_size)))
        else:
            layers.append(cell(width, hidden_size))
    return RecurrentStack(layers, residual=residual, skip=skip, dropout=dropout)


def _shaped(state: Sequence[CellState], batch: Sequence[int]) -> StackState:
    """Reshape the states to this leading shape."""
    return tuple(map_state(lambda part: part.reshape(*batch, part.shape[-1]), s) for s in state)
