"""Distribute: map potentials and a memory to a distribution over selections.

Each function takes the potentials of a scorer and the memory that they refer to. It passes the memory's
mask, (*batch, S), to the distribution in the shape that the distribution expects.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import pad

from ..distributions import Alignment, Categorical, LinearChain
from ._attention import Distribute
from ._memory import Layout, Memory
from ._readers import Selection


@dataclass(frozen=True)
class PerQuery:
    """The result of `per_query`: one independent distribution for each query.

    The queries can be the steps of a decoder, its hypotheses, or the words of a sentence.
    """

    make: Callable[..., Selection]

    def __call__(self, potentials: tuple[Tensor, ...], memory: Memory) -> Selection:
        mask = memory.mask
        return self.among(potentials, None if mask is None else mask.unsqueeze(-2), memory.layout)

    def among(
        self,
        potentials: tuple[Tensor, ...],
        allowed: Bool[Tensor, "*#batch #Q S"] | None,
        layout: Layout,
    ) -> Selection:
        """Return the distributions over the positions that are allowed to each query, in any layout.

        Args:
            potentials: Potentials of a scorer.
            allowed: True where a query may select a position; None if it may select all.
            layout: Layout of the positions.

        Returns:
            One distribution for each query.
        """
        del layout
        return self.make(*potentials, mask=allowed)


def per_query(make: Callable[..., Selection]) -> PerQuery:
    """Build one distribution over the positions for each query: `make(*potentials, mask=(*batch, 1, S))`.

    Args:
        make: Builds the distribution from the potentials and a `mask` argument, for example `Categorical`.

    Returns:
        A function for the `distribute` slot of `Attention`.
    """
    return PerQuery(make)


def per_memory(make: Callable[..., Selection]) -> Distribute:
    """Build one distribution for the whole memory: `make(*potentials, mask=(*batch, S))`."""

    def distribute(potentials: tuple[Tensor, ...], memory: Memory) -> Selection:
        return make(*potentials, mask=memory.mask)

    return distribute


def local_window(window: float) -> PerQuery:
    """Select one position for each query, near the position p that the query predicts.

        p = share * (number of real positions - 1)
        score = score - (s - p)^2 / (2 sigma^2),   sigma = window / 2

    Luong et al. 2015, eq. 10, multiply the softmax by a Gaussian. Adding the logarithm of the Gaussian
    to the score is equal up to normalization, and the result is a distribution. Padding does not count.
    """
    return per_query(partial(_near_place, window=window))


def _near_place(
    scores: Tensor, share: Tensor, *, mask: Tensor | None, window: float
) -> Categorical:
    # Always in float32: half precision cannot represent positions up to 300.
    real = torch.ones(scores.shape[-1:], device=scores.device) if mask is None else mask.float()
    places = real.cumsum(-1) - 1
    center = share * (real.sum(-1, keepdim=True) - 1).clamp(min=0)
    return Categorical(scores - 2 * ((places - center) / window) ** 2, mask=mask)


def head_selection(potentials: tuple[Tensor, ...], memory: Memory) -> Categorical:
    """Select one head for each word independently: another word or the root.

    `arcs[h, d]` of `ArcScorer` become choices `(*batch, n, n+1)`, root first. The heads may form a cycle.
    """
    (arcs,), mask = potentials, memory.mask
    words = arcs.shape[-1] - 1
    itself = torch.eye(words, dtype=torch.bool, device=arcs.device)
    scores = arcs[..., 1:].transpose(-1, -2).masked_fill(pad(itself, (1, 0)), -torch.inf)
    heads = None if mask is None else pad(mask, (1, 0), value=True).unsqueeze(-2)
    return Categorical(scores, mask=heads)


def chain_over_steps(potentials: tuple[Tensor, ...], memory: Memory) -> LinearChain:
    """Build a chain whose positions are the queries and whose states are the positions of the memory.

    Padding is a forbidden state, not a skipped position.
    """
    (unary, transitions), mask = potentials, memory.mask
    if mask is not None:
        unary = unary.masked_fill(~mask.unsqueeze(-2), -torch.inf)
        # The scores of padding are arbitrary; both ends of a transition must be real.
        pair = mask.unsqueeze(-1) & mask.unsqueeze(-2)
        transitions = transitions.masked_fill(~pair.unsqueeze(-3), -torch.inf)
    return LinearChain(unary, transitions)


def monotone_alignment(potentials: tuple[Tensor, ...], memory: Memory) -> Alignment:
    """Align all queries to positions in order.

    Each query gets one position, which is never before the position of the previous query.
    """
    (scores,) = potentials
    return Alignment.one_to_many(scores.transpose(-1, -2), source_mask=memory.mask)
