"""Bridges: how a decoder comes to know what was encoded. The lectures' three ways.

    initial state   s_0 = tanh( W summary )                        Sutskever et al. 2014; Xu et al. 2015
    every step      s_t = RNN( s_{t-1}, [x_t; summary] )           Cho et al. 2014, eq. 8
    both

and none, which makes the decoder a language model. The summary is one vector of the memory: the
encoder's own, or the mean of the values (Xu et al. 2015, section 3.1.2).

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
    """What a decoder starts from, and what it reads beside the token at every step."""

    step_size: int  # how much wider than a token's vector the input of a step is

    @abstractmethod
    def start(self, memory: Memory, zero: StackState) -> StackState:
        """The state to start from; `zero` is the state that knows nothing."""

    @abstractmethod
    def every_step(self, memory: Memory) -> Float[Tensor, "*batch D"]:
        """The vector that every step reads."""


@final
class NoBridge(AbstractBridge):
    """Nothing crosses but what attention reads."""

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
    """s_0 = tanh(W summary), for each layer of the decoder; the memory of an LSTM, which is not
    bounded, is V summary.
    """

    def __init__(self, summary_size: int, stack: RecurrentStack) -> None:
        super().__init__()
        self.step_size = 0
        sizes = [(layer.output_size, layer.has_memory) for layer in stack.layers_in_order()]
        self.hidden = nn.ModuleList(Linear(summary_size, size) for size, _ in sizes)
        self.memory = nn.ModuleList(Linear(summary_size, size) for size, has in sizes if has)

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
class EveryStepBridge(AbstractBridge):
    """The summary is a part of the input of every step."""

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
    """The initial state and every step."""

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
    """The memory with a summary: its own, or the mean of its values."""
    if memory.summary is not None:
        return memory
    places = memory
    if memory.layout.kind == "sentences":
        mask = None if memory.mask is None else memory.mask.flatten(-2)
        places = Memory(memory.values.flatten(-3, -2), mask)
    return memory._replace(summary=mean_pooling(places))


def summary_of(memory: Memory) -> Float[Tensor, "*batch D"]:
    """The summary, which a remembered memory has."""
    if memory.summary is None:
        raise ShapeError(
            "Decoder: the memory has no summary, expected one from remember(). "
            "Call memory = decoder.remember(memory) once, before start."
        )
    return memory.summary


def no_memory(*batch: int) -> Memory:
    """A memory of no places, for a decoder that is a language model.

    >>> no_memory(2).values.shape
    torch.Size([2, 0, 0])
    """
    return Memory(torch.zeros(*batch, 0, 0), summary=torch.zeros(*batch, 0))
