"""The history of an attention in the state of a decoder, which the next step's scores read: coverage, or the last weights.

    potentials_t = combine( inner scores_t, query_t, history_{t-1} )

The attention of a step depends on the earlier steps, so teacher forcing has a loop over time. If the stack does not
read the attention, the inner scores of all steps are computed before the loop, and all contexts after it.

Axes: *batch any leading shape, T steps, S positions, H width of a query.
References: See et al. 2017, eq. 10 and 11; Graves et al. 2014, eq. 7 to 9.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ...attention import Attention, Memory
from ...attention._scorers import scores_of
from ...attention.history._history import AbstractHistoryScorer, with_history
from ._steps import DecoderState


def history_scorer(attention: nn.Module | None) -> AbstractHistoryScorer | None:
    """Return the scorer of an attention if its scores depend on earlier steps, otherwise None."""
    if isinstance(attention, Attention) and isinstance(attention.scorer, AbstractHistoryScorer):
        return attention.scorer
    return None


def first_history(attention: nn.Module, memory: Memory) -> Float[Tensor, "*batch S"] | None:
    """Return the history before the first step; None if the attention has none."""
    scorer = history_scorer(attention)
    return None if scorer is None else scorer.first(memory)


def memory_at(state: DecoderState, memory: Memory) -> Memory:
    """Return the memory for one query after this state."""
    return memory if state.history is None else with_history(memory, state.history.unsqueeze(-2))


def history_after(
    attention: nn.Module | None, before: DecoderState, weights: Float[Tensor, "*batch S"] | None
) -> Float[Tensor, "*batch S"] | None:
    """Return the history after a step with these weights."""
    scorer = history_scorer(attention)
    if scorer is None or before.history is None or weights is None:
        return None
    return scorer.after(before.history, weights)


def histories(
    attention: nn.Module,
    queries: Float[Tensor, "*batch T H"],
    memory: Memory,
    mask: Bool[Tensor, "*batch T"] | None,
    history: Float[Tensor, "*batch S"],
) -> tuple[Float[Tensor, "*batch T S"], Float[Tensor, "*batch S"]]:
    """Return the history before each step and after the last; padded steps do not change it."""
    scorer = history_scorer(attention)
    assert isinstance(attention, Attention)
    assert scorer is not None
    inner = scores_of(scorer.inner, queries, memory.keys.inner)
    now, before = history.unsqueeze(-2), list[Tensor]()
    steps = zip(inner.split(1, -2), queries.split(1, -2), strict=True)
    for number, (scores, query) in enumerate(steps):
        before.append(now)
        potentials = scorer.combine(scores, query, now)
        after = scorer.after(now, attention.distribute(potentials, memory).marginals())
        now = after if mask is None else torch.where(mask[..., number, None, None], after, now)
    return torch.cat(before, -2), now.squeeze(-2)
