"""Structures over the cells of a grid: runs within a row, and a path from column to column.

    runs    z_s is "skip" or "read"; the table scores neighbors in a row, but not the last cell of a row
            with the first cell of the next
    path    z_c is "skip" or the row that is read in column c; neighboring columns are scored by

                skip to skip, skip to a row, a row to skip,
                a row to the same row, to an adjacent row, to any other row

A memory without a grid counts as a grid with one row; both are then segment attention.

Axes: *batch any leading shape, Q queries, S = h * w cells, h rows, w columns, K = h + 1 states.
Reference: Kim et al. 2017, section 3.1 (a chain over positions).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad
from typing_extensions import override

from ..distributions import LinearChain
from ._memory import Layout, Memory
from ._readers import AbstractReader, Read, Selection, read_by, to_total
from ._scorers import AbstractScorer, scores_of

_SKIP_ON, _ENTER, _LEAVE, _STAY, _BESIDE, _FAR = range(6)


@dataclass(frozen=True)
class PerQueryOnGrid:
    """One distribution over the cells for each query: `make(*potentials, mask=(*batch, 1, S), layout=...)`.

    The queries are independent of each other, as with `PerQuery`.
    """

    make: Callable[..., Selection]

    def __call__(self, potentials: tuple[Tensor, ...], memory: Memory) -> Selection:
        mask = None if memory.mask is None else memory.mask.unsqueeze(-2)
        return self.among(potentials, mask, memory.layout)

    def among(
        self,
        potentials: tuple[Tensor, ...],
        allowed: Bool[Tensor, "*#batch #Q S"] | None,
        layout: Layout,
    ) -> Selection:
        """Return the distributions over the cells that are allowed to each query, as `PerQuery.among`."""
        return self.make(*potentials, mask=allowed, layout=layout)


def runs(
    unary: Float[Tensor, "*#batch Q S K"],
    transitions: Float[Tensor, "K K"],
    *,
    mask: Bool[Tensor, "*#batch #Q S"] | None,
    layout: Layout,
) -> LinearChain:
    """Build a chain along each row."""
    size = unary.shape[-2]
    columns = _columns(layout, size)
    if columns == size:
        return LinearChain(unary, transitions, mask=mask)
    # The transition into the first real cell of a row has score 0, whichever state precedes it.
    if mask is None:
        inside = torch.arange(1, size, device=unary.device) % columns != 0
    else:
        seen = mask.unflatten(-1, (-1, columns)).cumsum(-1).flatten(-2)  # real cells up to this one
        inside = seen[..., 1:] > 1
    steps = torch.where(inside[..., None, None], transitions, 0.0)
    return LinearChain(unary, steps, mask=mask)


def path(
    scores: Float[Tensor, "*#batch Q S"],
    table: Float[Tensor, " 6"],
    *,
    mask: Bool[Tensor, "*#batch #Q S"] | None,
    layout: Layout,
) -> LinearChain:
    """Build a chain over columns whose states are "skip" and the rows."""
    columns = _columns(layout, scores.shape[-1])
    cells = scores.unflatten(-1, (-1, columns)).mT
    real = None
    if mask is not None:
        there = mask.unflatten(-1, (-1, columns)).mT
        cells, real = cells.masked_fill(~there, -torch.inf), there.any(-1)
    steps = table[_steps(cells.shape[-1]).to(table.device)]
    return LinearChain(pad(cells, (1, 0)), steps, mask=real)


def _columns(layout: Layout, size: int) -> int:
    return layout.columns if layout.kind == "grid" and layout.columns else size


def _steps(rows: int) -> Int[Tensor, "K K"]:
    """Map each pair of states to the table entry that scores the transition."""
    row = torch.arange(rows)
    apart = (row - row[:, None]).abs().clamp(max=2) + _STAY
    steps = pad(apart, (1, 0, 1, 0), value=_SKIP_ON)
    steps[0, 1:], steps[1:, 0] = _ENTER, _LEAVE
    return steps


@final
class PathScorer(AbstractScorer):
    """Scores cells and has a learned table for the six kinds of transitions between columns."""

    def __init__(self, inner: AbstractScorer) -> None:
        super().__init__()
        self.inner = inner
        self.steps = nn.Parameter(torch.empty(6).uniform_(-0.1, 0.1))

    @property
    @override
    def is_rotation_invariant(self) -> bool:
        return self.inner.is_rotation_invariant

    @override
    def remember(self, values: Tensor) -> Any:
        return self.inner.remember(values)

    @override
    def forward(
        self, query: Tensor, keys: Any
    ) -> tuple[Float[Tensor, "*batch Q S"], Float[Tensor, " 6"]]:
        return scores_of(self.inner, query, keys), self.steps


@final
class ExpectedPath(AbstractReader):
    """Weights each cell by the probability that the path crosses it, scaled to `total`."""

    def __init__(self, total: float | None = None) -> None:
        super().__init__()
        self.total = total

    @override
    def forward(self, distribution: Selection, values: Tensor) -> Read:
        weights = to_total(distribution.marginals()[..., 1:].mT.flatten(-2), self.total)
        return read_by(weights, values)
