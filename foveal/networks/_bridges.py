"""Bridges: how the encoded input reaches a decoder. The lectures present four ways.

    initial state   s_0 = tanh( W summary )                        Sutskever et al. 2014; Xu et al. 2015
    every step      s_t = RNN( s_{t-1}, [x_t; summary] )           Cho et al. 2014, eq. 8
    both
    learned state   s_0 is a parameter, the same for every input

No bridge at all makes the decoder a language model. The summary is one vector of the memory:
the summary of the encoder, or the mean of the values (Xu et al. 2015, section 3.1.2).

Axes: *batch any leading shape, D width of a summary.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from ..attention import Memory, mean_pooling
from ..batch_invariant import Linear
from ..errors import ShapeError
from .recurrent._layers import CellState
from .recurrent._stacks import RecurrentStack, StackState


class AbstractBridge(nn.Module, ABC):
    """Provides the initial state of a decoder, and an additional input of every step."""

    step_size: int  # additional width of the input of a step

    @abstractmethod
    def start(self, memory: Memory, zero: StackState) -> StackState:
        """Return the initial state of the decoder.

        Args:
            memory: Encoded input with a summary.
            zero: Zero state of the decoder's stack, one part for each layer.

        Returns:
            The state before the first token, with the shapes of `zero`.
        """

    @abstractmethod
    def every_step(self, memory: Memory) -> Float[Tensor, "*batch D"]:
        """Return the vector that every step reads.

        Args:
            memory: Encoded input with a summary.

        Returns:
            One vector of width `step_size` for each item; the width may be 0.
        """


@final
class NoBridge(AbstractBridge):
    """Passes nothing to the decoder, which then depends on the memory only through attention."""

    def __init__(self) -> None:
        super().__init__()
        self.step_size = 0

    @override
    def start(self, memory: Memory, zero: StackState) -> StackState:
        return zero

    @override
    def every_step(self, memory: Memory) -> Tensor:
        return summary_of(memory)[..., :0]


@final
class InitialStateBridge(AbstractBridge):
    """Computes s_0 = tanh(W summary) for each layer of the decoder.

    The cell state of an LSTM, which is not bounded, is V summary.

    Args:
        summary_size: Width of the summary of the memory.
        stack: Stack of the decoder; each of its layers gets an initial state.
    """

    def __init__(self, summary_size: int, stack: RecurrentStack) -> None:
        super().__init__()
        self.step_size = 0
        layers = stack.layers_in_order()
        self.hidden = nn.ModuleList(Linear(summary_size, layer.output_size) for layer in layers)
        self.memory = nn.ModuleList(
            Linear(summary_size, layer.memory_size) for layer in layers if layer.has_memory
        )

    @override
    def start(self, memory: Memory, zero: StackState) -> StackState:
        summary, cells = summary_of(memory), iter(self.memory)
        return tuple(
            CellState(
                torch.tanh(hidden(summary)),
                None if layer.cell is None else next(cells)(summary),
            )
            for hidden, layer in zip(self.hidden, zero, strict=True)
        )

    @override
    def every_step(self, memory: Memory) -> Tensor:
        return summary_of(memory)[..., :0]


@final
class LearnedStateBridge(AbstractBridge):
    """Learns s_0 of each layer as a parameter; the decoder depends on the memory only through attention.

    Args:
        stack: Stack of the decoder.
    """

    def __init__(self, stack: RecurrentStack) -> None:
        super().__init__()
        self.step_size = 0
        layers = stack.layers_in_order()
        self.hidden = nn.ParameterList(torch.zeros(layer.output_size) for layer in layers)
        self.memory = nn.ParameterList(
            torch.zeros(layer.memory_size) for layer in layers if layer.has_memory
        )

    @override
    def start(self, memory: Memory, zero: StackState) -> StackState:
        cells = iter(self.memory)
        return tuple(
            CellState(
                torch.tanh(hidden).expand_as(layer.hidden),
                None if layer.cell is None else next(cells).expand_as(layer.cell),
            )
            for hidden, layer in zip(self.hidden, zero, strict=True)
        )

    @override
    def every_step(self, memory: Memory) -> Tensor:
        return summary_of(memory)[..., :0]


@final
class EveryStepBridge(AbstractBridge):
    """Appends the summary to the input of every step.

    Args:
        summary_size: Width of the summary of the memory.
    """

    def __init__(self, summary_size: int) -> None:
        super().__init__()
        self.step_size = summary_size

    @override
    def start(self, memory: Memory, zero: StackState) -> StackState:
        return zero

    @override
    def every_step(self, memory: Memory) -> Tensor:
        return summary_of(memory)


@final
class InitialStateAndEveryStepBridge(AbstractBridge):
    """Uses the summary for the initial state and in every step.

    Args:
        summary_size: Width of the summary of the memory.
        stack: Stack of the decoder; each of its layers gets an initial state.
    """

    def __init__(self, summary_size: int, stack: RecurrentStack) -> None:
        super().__init__()
        self.step_size = summary_size
        self.initial = InitialStateBridge(summary_size, stack)

    @override
    def start(self, memory: Memory, zero: StackState) -> StackState:
        return self.initial.start(memory, zero)

    @override
    def every_step(self, memory: Memory) -> Tensor:
        return summary_of(memory)


def summarized(memory: Memory) -> Memory:
    """Add a summary to the memory: the mean of its values, unless it has one."""
    if memory.summary is not None:
        return memory
    return memory._replace(summary=mean_pooling(memory))


def summary_of(memory: Memory) -> Float[Tensor, "*batch D"]:
    """Return the summary, which a remembered memory has."""
    if memory.summary is None:
        raise ShapeError(
            "Decoder: the memory has no summary, expected one from remember(). "
            "Call memory = decoder.remember(memory) once, before start."
        )
    return memory.summary


def no_memory(*batch: int) -> Memory:
    """Build a memory without positions, for a decoder that is a language model.

    Args:
        *batch: Sizes of the batch axes.

    Returns:
        A memory with 0 positions and a summary of width 0.

    Examples:
        >>> no_memory(2).values.shape
        torch.Size([2, 0, 0])
    """
    return Memory(torch.zeros(*batch, 0, 0), summary=torch.zeros(*batch, 0))
