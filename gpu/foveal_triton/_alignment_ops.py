"""The ops of the monotone alignment; each has the arguments of the op of `foveal_native` of the same name.

Axes: B batch, R rows, C columns, N = R + C - 1 antidiagonals, 3 moves, P paths. A mask is
(B, R - 1 + C - 1): rows, then columns.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from . import _alignment_kernels as kernels, _alignment_tables as tables
from ._launching import has_fast_log, launch, op, power_of_two, stages_ahead, tile_size


class Side(NamedTuple):
    """Rows or columns: their indices with the masked ones first, and the number of masked ones (B, 1)."""

    order: Tensor
    masked: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> "Side":
        """Add the first row, which is always real."""
        real = pad(mask, (1, 0), value=True)
        order = real.to(torch.int32).argsort(dim=-1, stable=True)
        return cls(order.to(torch.int32), real.logical_not().sum(-1, keepdim=True).to(torch.int32))


class Grid(NamedTuple):
    """A grid of moves, turned to have no more rows than columns, because rows are in lanes."""

    moves: Tensor  # contiguous, in the layout of the input
    rows: Side | None
    columns: Side | None
    sizes: tuple[int, int]  # numbers of rows and columns
    strides: tuple[int, int]
    skip: int  # the index in the input of the move that skips a row

    @classmethod
    def of(cls, moves: Tensor, mask: Tensor | None) -> "Grid":
        """Choose the rows."""
        _, num_rows, num_columns, _ = moves.shape
        sides: tuple[Side | None, Side | None] = (None, None)
        if mask is not None:
            sides = (
                Side.of(mask.narrow(1, 0, num_rows - 1)),
                Side.of(mask.narrow(1, num_rows - 1, num_columns - 1)),
            )
        upright = cls(moves.contiguous(), *sides, (num_rows, num_columns), (num_columns, 1), 1)
        if num_rows <= num_columns:
            return upright
        return cls(upright.moves, sides[1], sides[0], (num_columns, num_rows), (1, num_columns), 2)

    @property
    def antidiagonals(self) -> int:
        """N."""
        return sum(self.sizes) - 1

    @property
    def places(self) -> tuple[Tensor, Tensor, Tensor]:
        """The order of rows and of columns, and the numbers of masked ones (B, 2)."""
        if self.rows is None or self.columns is None:
            return self.moves, self.moves, self.moves
        first = torch.cat([self.rows.masked, self.columns.masked], 1)
        return self.rows.order, self.columns.order, first

    def constants(self, *, sequential: bool) -> dict[str, Any]:
        """Return the constants of a kernel, and its number of warps."""
        lanes = power_of_two(self.sizes[0])
        warps = 1 if lanes <= 64 else 4 if lanes <= 256 else 16
        found = {"ROWS": lanes, "MASKED": self.rows is not None, "num_warps": warps}
        return found | {"STAGES": stages_ahead(self.moves)} if sequential else found

    def launch(self, kernel: Any, *tensors: Tensor, programs: int, **constants: Any) -> None:
        """Launch a kernel with the sizes of the grid."""
        launch(
            kernel, (programs,), *tensors, *self.sizes, *self.strides, SKIP=self.skip, **constants
        )

    def marginals_like(self) -> Tensor:
        """Return a tensor for moves, with 0 on padding."""
        return torch.empty_like(self.moves) if self.rows is None else torch.zeros_like(self.moves)


class Inside(NamedTuple):
    """Results of the inside pass; the weights are empty unless kept."""

    log_partition: Tensor  # (B,)
    weights: Tensor  # (B, N, 3, R)


def inside(grid: Grid, places: tuple[Tensor, Tensor, Tensor], *, keep: bool) -> Inside:
    """Run the inside pass.

    Args:
        grid: The moves.
        places: `grid.places`.
        keep: Whether to write weights.
    """
    batch = len(grid.moves)
    shape = (batch, grid.antidiagonals, 3, grid.sizes[0])
    found = Inside(grid.moves.new_empty(batch), grid.moves.new_empty(shape if keep else 0))
    grid.launch(
        kernels.inside, grid.moves, *places, *found, programs=batch, KEEP=keep,
        FAST=has_fast_log(grid.moves), **grid.constants(sequential=True),
    )  # fmt: skip
    return found


def _sweep(
    grid: Grid, weights: Tensor, first: Tensor, total: Tensor, terms: Tensor | None, *, back: bool
) -> Tensor:
    """Run a linear recursion over all antidiagonals (B, N, R)."""
    out = grid.moves.new_empty(len(grid.moves), grid.antidiagonals, grid.sizes[0])
    launch(
        kernels.sweep, (len(grid.moves),), weights, first, total, out if terms is None else terms, out,
        *grid.sizes, BACK=back, TERM=terms is not None, **grid.constants(sequential=True),
    )  # fmt: skip
    return out


@op("alignment_log_partition")
def alignment_log_partition(moves: Tensor, mask: Tensor | None) -> Tensor:
    """Compute log Z (B,)."""
    grid = Grid.of(moves, mask)
    return inside(grid, grid.places, keep=False).log_partition


@op("alignment_marginals")
def alignment_marginals(moves: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute log Z (B,) and the marginals of moves (B, R, C, 3)."""
    grid = Grid.of(moves, mask)
    places, found = grid.places, grid.marginals_like()
    log_partition, weights = inside(grid, places, keep=True)
    nodes = _sweep(grid, weights, places[2], log_partition, None, back=True)
    programs = len(moves) * grid.antidiagonals
    constants = grid.constants(sequential=False)
    grid.launch(
        tables.marginals_join, weights, nodes, *places, found, programs=programs, **constants
    )
    return log_partition, found


@op("alignment_tangent")
def alignment_tangent(marginals: Tensor, mask: Tensor | None, direction: Tensor) -> Tensor:
    """Compute the derivative of the marginals along a direction (B, R, C, 3)."""
    grid = Grid.of(marginals, mask)
    given, places = (grid.moves, direction.contiguous()), grid.places
    batch, programs = len(marginals), len(marginals) * grid.antidiagonals
    constants = grid.constants(sequential=False)
    nodes = (batch, grid.antidiagonals, grid.sizes[0])
    gains = marginals.new_empty(nodes[:2])
    weights = marginals.new_empty(*nodes[:2], 3, nodes[2])
    past_terms, future_terms = (marginals.new_empty(nodes) for _ in range(2))
    along = grid.marginals_like()
    grid.launch(tables.gained, *given, *places, gains, weights, programs=programs, **constants)
    grid.launch(
        tables.tangent_prepare, *given, *places, gains, past_terms, future_terms, programs=programs,
        **constants,
    )  # fmt: skip
    past = _sweep(grid, weights, places[2], gains, past_terms, back=False)
    future = _sweep(grid, weights, places[2], gains, future_terms, back=True)
    grid.launch(
        tables.tangent_join, *given, *places, gains, weights, past, future, along, programs=programs,
        **constants,
    )  # fmt: skip
    return along


def _trace(
    grid: Grid,
    places: tuple[Tensor, Tensor, Tensor],
    table: Tensor,
    uniforms: Tensor | None,
    num_paths: int,
) -> Tensor:
    """Trace paths (P, B, R, C, 3) back, True on their moves."""
    paths = torch.zeros((num_paths, *grid.moves.shape), dtype=torch.uint8, device=table.device)
    constants = grid.constants(sequential=True)
    at_once = min(power_of_two(num_paths), max(1, tile_size() // constants["ROWS"]))
    launch(
        kernels.trace, (len(grid.moves), -(-num_paths // at_once)), table, *places,
        table if uniforms is None else uniforms, paths, num_paths, *grid.sizes, *grid.strides,
        PATHS=at_once, SKIP=grid.skip, DRAW=uniforms is not None, **constants,
    )  # fmt: skip
    return paths.view(torch.bool)


@op("alignment_best")
def alignment_best(moves: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Find the best path (B, R, C, 3), True on its moves, and its score (B,)."""
    grid = Grid.of(moves, mask)
    places, batch = grid.places, len(moves)
    scores = moves.new_empty(batch)
    pointers = torch.empty(
        (batch, grid.antidiagonals, grid.sizes[0]), dtype=torch.int32, device=moves.device
    )
    grid.launch(
        kernels.best, grid.moves, *places, scores, pointers, programs=batch,
        **grid.constants(sequential=True),
    )  # fmt: skip
    return _trace(grid, places, pointers, None, 1).squeeze(0), scores


@op("alignment_sample")
def alignment_sample(moves: Tensor, mask: Tensor | None, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draw paths (P, B, R, C, 3) with uniform numbers (P, B, N-1); return whether any exist (B,)."""
    grid = Grid.of(moves, mask)
    places = grid.places
    log_partition, weights = inside(grid, places, keep=True)
    paths = _trace(grid, places, weights, uniforms.contiguous(), len(uniforms))
    return paths, log_partition > -torch.inf
