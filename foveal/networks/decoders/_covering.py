"""Coverage in the state of a decoder: the attention weights of all steps so far, which the next step's scores read.

    covered_t = sum over t' < t of weights_t',   score_t = inner score_t + w * covered_t

Teacher forcing is then a loop over time, because the attention of a step depends on the earlier steps.

Axes: *batch any leading shape, S positions.
Reference: See et al. 2017, eq. 10 and 11.
"""

from jaxtyping import Float
from torch import Tensor, nn

from ...attention import Attention, CoverageScorer, Memory
from ...attention._coverage import with_coverage
from ._steps import DecoderState, Reading


def reads_coverage(attention: nn.Module) -> bool:
    """Return whether the scores of an attention depend on its coverage."""
    return isinstance(attention, Attention) and isinstance(attention.scorer, CoverageScorer)


def first_coverage(attention: nn.Module, memory: Memory) -> Float[Tensor, "*batch S"] | None:
    """Return the coverage before the first step, 0; None if the attention does not read it."""
    if not reads_coverage(attention):
        return None
    return memory.values.new_zeros(memory.values.shape[:-1])


def memory_at(state: DecoderState, memory: Memory) -> Memory:
    """Return the memory for one query after this state."""
    return memory if state.covered is None else with_coverage(memory, state.covered.unsqueeze(-2))


def coverage_after(
    before: DecoderState, attended: Reading | None
) -> Float[Tensor, "*batch S"] | None:
    """Return the coverage after a step with one query."""
    if before.covered is None or attended is None:
        return None
    return before.covered + attended.weights.squeeze(-2)
