"""Inference over monotone alignments: log-partition, marginals, best paths, samples.

    p(path) = exp( sum over its moves of moves[i, j, m] - log Z )

A path leads from node (0, 0) to node (S, T) of a grid; moves[i, j, m] scores the move m that
enters node (i, j): a match from (i-1, j-1), a skip of source item i from (i-1, j), or a skip of
target item j from (i, j-1). The gradient of log Z is the marginals, and the gradient through the
marginals is one tangent pass over stored conditional probabilities.

Axes: B batch, R = S + 1 rows and C = T + 1 columns of nodes, 3 moves, P paths, k ranks.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .. import _native
from .._arguments import check_alignment
from .._derivatives import differentiable
from .._precision import result_dtype
from . import _native as kernels, _passes as passes, _search as search

_PURE = differentiable("alignment", passes, num_potentials=1)
_NATIVE = _native.differentiable("alignment", kernels, num_potentials=1)


def alignment_log_partition(
    moves: Float[Tensor, "B R C 3"],
    source_mask: Bool[Tensor, "B R-1"] | None = None,
    target_mask: Bool[Tensor, "B C-1"] | None = None,
) -> Float[Tensor, " B"]:
    """Compute log Z, the log-sum of exp(score) over all paths, in O(S T) time and memory.

    Args:
        moves: Score of the move that enters each node: match, skip of a source item, skip of a target item.
        source_mask: True on real source items; by default, all are real.
        target_mask: True on real target items; by default, all are real.

    Returns:
        log Z of each batch item; -inf if no path is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: A mask is not boolean, or is on another device than the scores.

    Examples:
        >>> alignment_log_partition(torch.zeros(1, 3, 3, 3)).exp().round()    # a Delannoy number
        tensor([13.])
    """
    check_alignment(moves, source_mask, target_mask)
    if kernels.has_kernels(moves):
        return _NATIVE.log_partition((moves,), _join(moves, source_mask, target_mask))
    upright = _is_upright(moves)
    mask = _join(moves, source_mask, target_mask, upright)
    return _PURE.log_partition((_turn(moves, upright),), mask)


def alignment_marginals(
    moves: Float[Tensor, "B R C 3"],
    source_mask: Bool[Tensor, "B R-1"] | None = None,
    target_mask: Bool[Tensor, "B C-1"] | None = None,
) -> Float[Tensor, "B R C 3"]:
    """Compute p(the path has a move); the result is differentiable once more.

    Args:
        moves: Score of the move that enters each node: match, skip of a source item, skip of a target item.
        source_mask: True on real source items; by default, all are real.
        target_mask: True on real target items; by default, all are real.

    Returns:
        Probability of each move, 0 on padding.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: A mask is not boolean, or is on another device than the scores.

    Examples:
        >>> alignment_marginals(torch.zeros(1, 2, 2, 3))[0, 1, 1]    # three paths; the last moves
        tensor([0.3333, 0.3333, 0.3333])
    """
    check_alignment(moves, source_mask, target_mask)
    if kernels.has_kernels(moves):
        return _NATIVE.marginals((moves,), _join(moves, source_mask, target_mask))[0]
    upright = _is_upright(moves)
    mask = _join(moves, source_mask, target_mask, upright)
    return _turn(_PURE.marginals((_turn(moves, upright),), mask)[0], upright)


class AlignmentBest(NamedTuple):
    """The k best paths, best first, True on their moves; ranks beyond the last path score -inf."""

    paths: Bool[Tensor, "k B R C 3"]
    scores: Float[Tensor, "k B"]


def alignment_best(
    moves: Float[Tensor, "B R C 3"],
    source_mask: Bool[Tensor, "B R-1"] | None = None,
    target_mask: Bool[Tensor, "B C-1"] | None = None,
    *,
    k: int = 1,
) -> AlignmentBest:
    """Find the k paths of highest score (Needleman-Wunsch for k = 1) in O(S T k) time.

    Args:
        moves: Score of the move that enters each node: match, skip of a source item, skip of a target item.
        source_mask: True on real source items; by default, all are real.
        target_mask: True on real target items; by default, all are real.
        k: Number of paths.

    Returns:
        Paths and their scores, best first.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: A mask is not boolean, or is on another device than the scores.

    Examples:
        >>> alignment_best(torch.zeros(1, 2, 2, 3), k=2).scores
        tensor([[0.],
                [0.]])
    """
    check_alignment(moves, source_mask, target_mask)
    if k == 1 and kernels.has_kernels(moves):
        mask = _join(moves, source_mask, target_mask)
        paths, scores = kernels.best(moves.detach(), mask)
        return AlignmentBest(paths.unsqueeze(0), scores.unsqueeze(0))
    upright = _is_upright(moves)
    mask = _join(moves, source_mask, target_mask, upright)
    found = search.best(passes.prepare(_turn(moves.detach(), upright), mask), k)
    scores = found.scores.T.to(result_dtype(moves))
    return AlignmentBest(_paths(found.paths, mask, upright, len(moves)), scores)


class AlignmentSamples(NamedTuple):
    """Exact samples of paths, True on their moves; `possible` is False for items without any path."""

    paths: Bool[Tensor, "P B R C 3"]
    possible: Bool[Tensor, " B"]


def alignment_sample(
    moves: Float[Tensor, "B R C 3"],
    source_mask: Bool[Tensor, "B R-1"] | None = None,
    target_mask: Bool[Tensor, "B C-1"] | None = None,
    *,
    num_samples: int,
    generator: torch.Generator | None = None,
) -> AlignmentSamples:
    """Draw independent exact samples, by forward filtering and backward sampling.

    Args:
        moves: Score of the move that enters each node: match, skip of a source item, skip of a target item.
        source_mask: True on real source items; by default, all are real.
        target_mask: True on real target items; by default, all are real.
        num_samples: Number of paths to draw for each batch item.
        generator: Source of random numbers; by default, the generator of the device.

    Returns:
        Sampled paths, and whether any path is possible.

    Raises:
        ShapeError: A tensor does not have the shape of the annotation, with one batch axis.
        ValueRangeError: A mask is not boolean, or is on another device than the scores.

    Examples:
        >>> alignment_sample(torch.zeros(1, 2, 2, 3), num_samples=5).paths.shape
        torch.Size([5, 1, 2, 2, 3])
    """
    check_alignment(moves, source_mask, target_mask)
    if kernels.has_kernels(moves):
        mask = _join(moves, source_mask, target_mask)
        return AlignmentSamples(*kernels.sample(moves.detach(), mask, num_samples, generator))
    upright = _is_upright(moves)
    mask = _join(moves, source_mask, target_mask, upright)
    grid = passes.prepare(_turn(moves.detach(), upright), mask)
    alphas = passes.inside(grid)
    weights = passes.conditionals(grid, alphas, torch.float64)
    drawn = search.draw(grid, weights, num_samples, generator)
    paths = _paths(drawn, mask, upright, len(moves))
    return AlignmentSamples(paths, alphas[-1, -1] > -torch.inf)


def _is_upright(moves: Tensor) -> bool:
    """Return whether the grid has no more rows than columns. The passes pad each antidiagonal
    to the number of rows, so the rows should be the shorter side.
    """
    return moves.shape[1] <= moves.shape[2]


def _turn(moves: Tensor, upright: bool) -> Tensor:
    """Exchange source and target of a grid (B, R, C, 3), unless it is upright."""
    if upright:
        return moves
    match, skip_source, skip_target = moves.transpose(1, 2).unbind(-1)
    return torch.stack([match, skip_target, skip_source], -1)


def _join(
    moves: Tensor, source_mask: Tensor | None, target_mask: Tensor | None, upright: bool = True
) -> Tensor | None:
    """Join the masks of rows and columns to the mask (B, S + T) of the passes and kernels."""
    if source_mask is None and target_mask is None:
        return None
    sides = [
        moves.new_ones(len(moves), size - 1, dtype=torch.bool) if side is None else side
        for side, size in zip((source_mask, target_mask), moves.shape[1:3], strict=True)
    ]
    return torch.cat(sides if upright else sides[::-1], -1)


def _paths(paths: Tensor, mask: Tensor | None, upright: bool, batch: int) -> Tensor:
    """Convert traced paths (N, 3, R, B * P) to booleans (P, B, S+1, T+1, 3)."""
    num_paths = paths.shape[-1] // max(batch, 1)
    mask = None if mask is None else mask.repeat_interleave(num_paths, 0)
    found = _turn(passes.from_antidiagonals(paths, mask), upright)
    return found.unflatten(0, (batch, num_paths)).transpose(0, 1)
