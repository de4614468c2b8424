"""Distribute: potentials and a mask become a distribution over selections.

Each function here takes the potentials of a scorer and the mask of the memory, (*batch, S), and
puts the mask where the distribution wants it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ..distributions import Alignment, LinearChain
from ._attention import Distribute
from ._readers import Selection


def per_query(make: Callable[..., Selection]) -> Distribute:
    """One distribution over the places for each query: `make(*potentials, mask=(*batch, 1, S))`."""

    def distribute(potentials: tuple[Tensor, ...], mask: Tensor | None) -> Selection:
        return make(*potentials, mask=None if mask is None else mask.unsqueeze(-2))

    return distribute


def per_memory(make: Callable[..., Selection]) -> Distribute:
    """One distribution for the whole memory: `make(*potentials, mask=(*batch, S))`."""

    def distribute(potentials: tuple[Tensor, ...], mask: Tensor | None) -> Selection:
        return make(*potentials, mask=mask)

    return distribute


def chain_over_steps(potentials: tuple[Tensor, ...], mask: Tensor | None) -> LinearChain:
    """A chain whose positions are the queries and whose states are the places: padding is a state
    that is forbidden, not a position that is skipped.
    """
    unary, transitions = potentials
    if mask is not None:
        unary = unary.masked_fill(~mask.unsqueeze(-2), -torch.inf)
        # The scores of padding may be anything; both ends of a step have to be real.
        pair = mask.unsqueeze(-1) & mask.unsqueeze(-2)
        transitions = transitions.masked_fill(~pair.unsqueeze(-3), -torch.inf)
    return LinearChain(unary, transitions)


def monotone_alignment(potentials: tuple[Tensor, ...], mask: Tensor | None) -> Alignment:
    """An alignment of all queries to the places, in order: each query is given one place, never an
    earlier one than the query before it.
    """
    (scores,) = potentials
    return Alignment.one_to_many(scores.transpose(-1, -2), source_mask=mask)
