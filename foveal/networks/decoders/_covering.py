"""Coverage in the state of a decoder: the attention weights of all steps so far, which the next step's scores read.

    covered_t = sum over t' < t of weights_t',   score_t = inner score_t + w * covered_t

The attention of a step depends on the earlier steps, so teacher forcing has a loop over time. If the stack does not
read the attention, the inner scores of all steps are computed before the loop, and all contexts after it.

Axes: *batch any leading shape, T steps, S positions, H width of a query.
Reference: See et al. 2017, eq. 10 and 11.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ...attention import Attention, CoverageScorer, Memory
from ...attention._coverage import with_coverage
from ...attention._scorers import scores_of
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


def coverages(
    attention: nn.Module,
    queries: Float[Tensor, "*batch T H"],
    memory: Memory,
    mask: Bool[Tensor, "*batch T"] | None,
    covered: Float[Tensor, "*batch S"],
) -> tuple[Float[Tensor, "*batch T S"], Float[Tensor, "*batch S"]]:
    """Return the coverage before each step and after the last; padded steps add nothing."""
    assert isinstance(attention, Attention)
    assert isinstance(attention.scorer, CoverageScorer)
    inner = scores_of(attention.scorer.inner, queries, memory.keys.inner)
    now, before = covered.unsqueeze(-2), list[Tensor]()
    for number, scores in enumerate(inner.split(1, -2)):
        before.append(now)
        potentials = (scores + attention.scorer.weight * now,)
        weights = attention.distribute(potentials, memory).marginals()
        if mask is not None:
            weights = weights * mask[..., number, None, None]
        now = now + weights
    return torch.cat(before, -2), now.squeeze(-2)
