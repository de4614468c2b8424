"""Steps of a stack with input feeding: one part of the input is known for all steps in advance, the other
comes from the previous step.

    W [x_t; v_{t-1}] + b  =  ( W_x x_t + b )  +  W_v v_{t-1}

The first term of the lowest layer is one product over all steps; the loop computes the second.

Axes: *batch any leading shape, T steps, D width of the known part, A of the fed part.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import linear

from ..recurrent._cells import AbstractFusedCell
from ..recurrent._stacks import RecurrentStack, StackState, StackStep


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
