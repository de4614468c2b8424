"""A whole search step in one call of the C++ kernels, for the most common decoder.

It has one LSTM, a small vocabulary, and softmax attention with additive scores to a memory. A step then takes about as
long as its products, also for a single item. Other decoders call a kernel for each part.

Axes: B items, K hypotheses of each.
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from ..decoders._steps import DecoderState
from ..recurrent._layers import CellState
from ._matrix import Matrix
from ._prepared_lstm import PreparedLSTM
from ._stepping_state import SearchStep, SteppingState


class WholeStep(NamedTuple):
    """The weights of a step."""

    table: Tensor  # scores of the gates for each token
    of_state: Tensor
    of_hidden: Tensor
    weight: Tensor  # of the additive scores
    output: Tensor
    bias: Tensor
    half: bool

    def step(self, state: SteppingState, tokens: Int[Tensor, "B K"]) -> SearchStep:
        """Feed one token to every hypothesis."""
        memory, ((hidden, cell),) = state.memory, state.decoder.layers
        keys, shut, _ = memory.keys
        hidden, cell, weights, log_probs = torch.ops.foveal_native.search_decode(
            self.table,
            tokens,
            memory.summary,
            hidden,
            cell,
            self.of_state,
            self.of_hidden,
            keys,
            self.weight,
            memory.values,
            shut,
            self.output,
            self.bias,
            self.half,
        )
        after = DecoderState((CellState(hidden, cell),))
        return SearchStep(SteppingState(memory, after), log_probs, weights)


def whole_step(
    table: Tensor | None,
    cells: list[PreparedLSTM],
    of_hidden: Matrix,
    weight: Tensor,
    output: Matrix,
    bias: Tensor,
) -> WholeStep | None:
    """Return the step of these parts; None if the kernels do not support them."""
    packed = [cell.from_state.packed for cell in cells] + [of_hidden.packed, output.packed]
    found = [part for part in packed if part is not None]
    if table is None or len(found) != len(packed) or len(packed) != 3:
        return None
    of_state, of_both, of_vector = (part.blocks for part in found)
    return WholeStep(table, of_state, of_both, weight, of_vector, bias, found[0].half)
