"""Location addressing: an attention that moves from the weights of the previous step.

    c = softmax(scores)                                    by content
    g = gate * c + (1 - gate) * w_{t-1}                    interpolation with the previous weights
    m[s] = sum over j of shift[j] g[s - j]                 shift by -n to n positions
    w_t[s] = m[s]^sharpness / sum over s' of m[s']^sharpness

gate, shift (a softmax) and sharpness (at least 1) are functions of the query. Weights that leave the memory at its ends
are lost, and the rest is normalized. The first step moves from the first real position.

A step that reads the next position does so at any distance from the start, which is why models with this attention can
copy sequences that are longer than the training sequences.

Axes: *batch any leading shape, Q queries, S positions, D width of a query, P parameters of a head.
Reference: Graves et al. 2014, eq. 5 to 9; there, positions are on a ring.
"""

from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad, softplus
from typing_extensions import override

from ...batch_invariant import Linear, sigmoid
from ...distributions import Categorical
from .._distribute import PerQuery, per_query
from .._memory import Memory
from .._scorers import AbstractScorer
from ._history import AbstractHistoryScorer

# A smaller weight counts as 0: its logarithm has a gradient of more than 1e20.
_NONE = 1e-20


@final
class ShiftScorer(AbstractHistoryScorer):
    """Adds the movement of a head to the scores of another scorer, for `shifted`.

    Args:
        inner: Scores the positions by content.
        query_size: Width of a query.
        most: Number of positions that one step can move, in both directions.

    Examples:
        >>> from foveal.attention import DotScorer
        >>> scorer = ShiftScorer(DotScorer(), query_size=2, most=1)
        >>> scores, head, before = scorer(torch.ones(1, 2), scorer.remember(torch.eye(2)))
        >>> head.shape                     # gate, sharpness, and shifts by -1, 0 and 1
        torch.Size([1, 5])
    """

    def __init__(self, inner: AbstractScorer, query_size: int, most: int = 1) -> None:
        super().__init__(inner)
        self.head = Linear(query_size, 2 + 2 * most + 1)

    @override
    def first(self, memory: Memory) -> Float[Tensor, "*batch S"]:
        values, mask = memory.values, memory.mask
        weights = values.new_zeros(values.shape[:-1])
        if mask is None:
            weights[..., :1] = 1.0
            return weights
        return weights.masked_fill(mask & (mask.cumsum(-1) == 1), 1.0)

    @override
    def after(self, history: Tensor, weights: Tensor) -> Float[Tensor, "*batch S"]:
        return weights

    @override
    def combine(
        self, scores: Tensor, query: Tensor, history: Tensor | None
    ) -> tuple[
        Float[Tensor, "*batch Q S"], Float[Tensor, "*batch Q P"], Float[Tensor, "*batch Q S"]
    ]:
        before = torch.zeros_like(scores) if history is None else history
        return scores, self.head(query), before


def shifted() -> PerQuery:
    """Select one position for each query, from the potentials of `ShiftScorer`.

    Returns:
        A function for the `distribute` slot of `Attention`.
    """
    return per_query(_moved)


def _moved(
    scores: Float[Tensor, "*batch Q S"],
    head: Float[Tensor, "*batch Q P"],
    before: Float[Tensor, "*batch Q S"],
    *,
    mask: Bool[Tensor, "*batch 1 S"] | None,
) -> Categorical:
    gate, sharpness, shifts = head.split([1, 1, head.shape[-1] - 2], -1)
    gate, content = sigmoid(gate), Categorical(scores, mask=mask).marginals()
    weights = _shift_real(gate * content + (1 - gate) * before, shifts.softmax(-1), mask)
    # log 0 has no gradient, so compute it only where there is some weight.
    some = weights > _NONE
    logs = (1 + softplus(sharpness)) * torch.where(some, weights, 1.0).log()
    return Categorical(torch.where(some, logs, -torch.inf), mask=mask)


def _shift_real(
    weights: Float[Tensor, "*batch Q S"],
    shifts: Float[Tensor, "*batch Q J"],
    mask: Bool[Tensor, "*batch 1 S"] | None,
) -> Float[Tensor, "*batch Q S"]:
    """Move weights among the real positions, as if there were no padding between them."""
    if mask is None:
        return shift(weights, shifts)
    if mask.is_cpu and bool((mask[..., :-1] >= mask[..., 1:]).all()):  # padding only at the end
        return shift(weights, shifts)
    order = (~mask).to(torch.int8).argsort(dim=-1, stable=True).expand_as(weights)
    moved = shift(weights.gather(-1, order), shifts)
    return torch.zeros_like(moved).scatter(-1, order, moved)


def shift(
    weights: Float[Tensor, "*batch S"], shifts: Float[Tensor, "*batch J"]
) -> Float[Tensor, "*batch S"]:
    """Move weights along their axis: `shifts[j]` is the fraction that moves by j - (J - 1) / 2 positions.

    Args:
        weights: Weights to move; the part that moves past an end is lost.
        shifts: Fractions for an odd number of distances.

    Returns:
        The moved weights.

    Examples:
        >>> shift(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.1, 0.2, 0.7]))
        tensor([0.2000, 0.7000, 0.0000])
    """
    size, most = weights.shape[-1], shifts.shape[-1] // 2
    padded = pad(weights, (most, most))
    parts = shifts.unsqueeze(-2).unbind(-1)
    return sum(
        (part * padded[..., 2 * most - j : 2 * most - j + size] for j, part in enumerate(parts)),
        torch.zeros_like(weights),
    )
