"""Teacher forcing as a loop over time: one part of a step's input is known in advance for all steps, the other
depends on the previous step (input feeding, or the attention of the previous state).

    W [x_t; v_{t-1}] + b  =  ( W_x x_t + b )  +  W_v v_{t-1}

The first term of the lowest layer is one product over all steps; the loop computes the second.

Axes: *batch any leading shape, T steps, D width of the known part, A of the fed part.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from ...attention import Memory
from ..recurrent._cells import AbstractFusedCell, carry
from ..recurrent._stacks import RecurrentStack, StackState, StackStep
from ._shared_operand import shared_operand
from ._steps import DecoderState

_MANY = 48  # minimum number of positions for which it is faster: benchmarks/input_feeding.py


@final
class FedSteps:
    """The steps of one sequence through a stack.

    A stack that feeds its input to more than the lowest layer, or a custom cell, reads the concatenated
    parts.
    """

    def __init__(self, stack: RecurrentStack, known: Float[Tensor, "*batch T D"]) -> None:
        self._stack, self._cell = stack, None
        lowest = stack.cells_in_order()[0]
        if isinstance(lowest, AbstractFusedCell) and not (stack.residual or stack.skip):
            weights, size = lowest.weights, known.shape[-1]
            known = linear(known, weights.input[:, :size], weights.input_bias)
            self._cell = lowest
            self._weight = weights.input[:, size:].to(known.dtype)  # autocast would cast every step
        self._known = known.unbind(-2)  # one backward for all steps, unlike indexing

    def step(self, number: int, fed: Float[Tensor, "*batch A"], state: StackState) -> StackStep:
        """Run step `number`, starting from `state`."""
        known = self._known[number]
        if self._cell is None:
            return self._stack.step(torch.cat([known, fed], -1), state)
        from_input = known + linear(fed, self._weight)
        lowest = self._cell.update(from_input, self._cell.from_state(state[0]), state[0])
        return self._stack.climb(lowest, state)


def shared(memory: Memory) -> Memory:
    """Prepare the memory, with all tensors in its keys, for many steps.

    With few positions, accumulating gradients directly is faster than deferring them.
    """
    if memory.values.shape[-2] < _MANY:
        return memory
    keys = shared_operand(memory.keys) if isinstance(memory.keys, Tensor) else memory.keys
    return memory._replace(values=shared_operand(memory.values), keys=keys)


def real_items(mask: Tensor | None, num_steps: int) -> list[Tensor | None]:
    """Return, for each step, the items that take it; None if all do, in which case no state is carried over."""
    if mask is None:
        return [None] * num_steps
    everyone = mask.reshape(-1, num_steps).all(0).tolist()
    return [None if all_real else mask[..., t] for t, all_real in enumerate(everyone)]


def carried(real: Tensor, after: DecoderState, before: DecoderState) -> DecoderState:
    """Select the new state for items with a real token, the old state for the others."""
    real = real.unsqueeze(-1)
    layers = (carry(real, new, old) for new, old in zip(after.layers, before.layers, strict=True))
    own = None if after.own is None else torch.where(real, after.own, before.own)
    history = after.history
    if history is not None and before.history is not None:
        history = torch.where(real, history, before.history)
    return DecoderState(tuple(layers), own, history)
