"""Distribute: potentials and a memory become a distribution over selections.

Each function here takes the potentials of a scorer and the memory that they are about, and puts its
mask, (*batch, S), where the distribution wants it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..distributions import Alignment, Categorical, LinearChain
from ._attention import Distribute
from ._memory import Memory
from ._readers import Selection


@dataclass(frozen=True)
class PerQuery:
    """What `per_query` gives: queries that know nothing of each other, so that they may be the
    steps of a decoder, or its hypotheses, as well as the words of a sentence.
    """

    make: Callable[..., Selection]

    def __call__(self, potentials: tuple[Tensor, ...], memory: Memory) -> Selection:
        mask = memory.mask
        return self.make(*potentials, mask=None if mask is None else mask.unsqueeze(-2))


def per_query(make: Callable[..., Selection]) -> PerQuery:
    """One distribution over the places for each query: `make(*potentials, mask=(*batch, 1, S))`."""
    return PerQuery(make)


def per_memory(make: Callable[..., Selection]) -> Distribute:
    """One distribution for the whole memory: `make(*potentials, mask=(*batch, S))`."""

    def distribute(potentials: tuple[Tensor, ...], memory: Memory) -> Selection:
        return make(*potentials, mask=memory.mask)

    return distribute


def local_window(window: float) -> PerQuery:
    """One place for each query, drawn to the place p that it predicts.

        p = share * (number of real places - 1)
        score = score - (s - p)^2 / (2 sigma^2),   sigma = window / 2

    Luong et al. 2015, eq. 10, multiply the softmax by the bell curve; adding its logarithm to the
    score is the same up to normalization, and leaves a distribution. Only real places count.
    """
    return per_query(partial(_near_place, window=window))


def _near_place(
    scores: Tensor, share: Tensor, *, mask: Tensor | None, window: float
) -> Categorical:
    # In float32 whatever the scores are: half precision cannot count to 300.
    real = torch.ones(scores.shape[-1:], device=scores.device) if mask is None else mask.float()
    places = real.cumsum(-1) - 1
    center = share * (real.sum(-1, keepdim=True) - 1).clamp(min=0)
    return Categorical(scores - 2 * ((places - center) / window) ** 2, mask=mask)


def head_selection(potentials: tuple[Tensor, ...], memory: Memory) -> Categorical:
    """One head for each word by itself, any other word or the root: `arcs[h, d]` of `ArcScorer`
    become choices `(*batch, n, n+1)`, the root first. Nothing keeps the heads from forming a cycle.
    """
    (arcs,), mask = potentials, memory.mask
    words = arcs.shape[-1] - 1
    itself = torch.eye(words, dtype=torch.bool, device=arcs.device)
    scores = arcs[..., 1:].transpose(-1, -2).masked_fill(pad(itself, (1, 0)), -torch.inf)
    heads = None if mask is None else pad(mask, (1, 0), value=True).unsqueeze(-2)
    return Categorical(scores, mask=heads)


def chain_over_steps(potentials: tuple[Tensor, ...], memory: Memory) -> LinearChain:
    """A chain whose positions are the queries and whose states are the places: padding is a state
    that is forbidden, not a position that is skipped.
    """
    (unary, transitions), mask = potentials, memory.mask
    if mask is not None:
        unary = unary.masked_fill(~mask.unsqueeze(-2), -torch.inf)
        # The scores of padding may be anything; both ends of a step have to be real.
        pair = mask.unsqueeze(-1) & mask.unsqueeze(-2)
        transitions = transitions.masked_fill(~pair.unsqueeze(-3), -torch.inf)
    return LinearChain(unary, transitions)


def monotone_alignment(potentials: tuple[Tensor, ...], memory: Memory) -> Alignment:
    """An alignment of all queries to the places, in order: each query is given one place, never an
    earlier one than the query before it.
    """
    (scores,) = potentials
    return Alignment.one_to_many(scores.transpose(-1, -2), source_mask=memory.mask)
