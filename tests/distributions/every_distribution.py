"""One small distribution of each kind, built from its scores, for tests of all distributions."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from foveal.distributions import (
    PCFG,
    AbstractDistribution,
    Alignment,
    Categorical,
    Entmax,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SiblingTree,
    SpanningTree,
    SpanTree,
    SparseChain,
    Sparsemax,
    Subset,
)
from foveal.distributions._sparse import AbstractSparseDistribution


class Kind(NamedTuple):
    """`build` takes scores with any leading shape; `event` is their shape without it."""

    build: Callable[[Tensor], AbstractDistribution]
    event: tuple[int, ...]
    read: tuple[int, ...]  # the index of a score that some structure reads


class SparseKind(NamedTuple):
    build: Callable[[Tensor], AbstractSparseDistribution]
    event: tuple[int, ...]
    read: tuple[int, ...]


def table(size: int, like: Tensor) -> Tensor:
    return torch.eye(size, dtype=like.dtype)


DENSE = {
    "Categorical": Kind(Categorical, (3,), (1,)),
    "Subset": Kind(Subset, (3,), (1,)),
    "KSubset": Kind(lambda scores: KSubset(scores, 2), (4,), (1,)),
    "LinearChain": Kind(lambda unary: LinearChain(unary, table(2, unary)), (3, 2), (1, 1)),
    "LinearChain, many states": Kind(
        lambda unary: LinearChain(unary, table(12, unary)), (3, 12), (1, 1)
    ),
    "SemiMarkov": Kind(
        lambda segments: SemiMarkov(segments, table(2, segments)), (3, 2, 2), (1, 1, 1)
    ),
    "Alignment": Kind(Alignment, (3, 3, 3), (1, 1, 0)),
    "ProjectiveTree": Kind(ProjectiveTree, (4, 4), (1, 2)),
    "ProjectiveTree, many roots": Kind(
        lambda arcs: ProjectiveTree(arcs, single_root=False), (4, 4), (1, 2)
    ),
    "SpanningTree": Kind(SpanningTree, (4, 4), (1, 2)),
    "SpanningTree, many roots": Kind(
        lambda arcs: SpanningTree(arcs, single_root=False), (4, 4), (1, 2)
    ),
    "SpanTree": Kind(SpanTree, (3, 3), (0, 1)),
    "SpanTree, labeled": Kind(lambda spans: SpanTree(spans, labeled=True), (3, 3, 2), (0, 1, 1)),
    "PCFG": Kind(
        lambda spans: PCFG(spans, spans.new_ones(2, 2, 2), spans.new_zeros(2)), (3, 3, 2), (0, 1, 1)
    ),
    "SiblingTree": Kind(lambda arcs: SiblingTree(arcs, arcs.new_ones(4, 4, 4)), (4, 4), (1, 2)),
}

SPARSE = {
    "Sparsemax": SparseKind(Sparsemax, (3,), (1,)),
    "Entmax": SparseKind(Entmax, (3,), (1,)),
    "Entmax, 1.3": SparseKind(lambda scores: Entmax(scores, alpha=1.3), (3,), (1,)),
    "SparseChain": SparseKind(lambda unary: SparseChain(unary, table(2, unary)), (3, 2), (1, 1)),
}


def scores_of(kind: Kind | SparseKind, *batch: int, seed: int = 0) -> Tensor:
    """Return standard normal scores in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*batch, *kind.event, generator=generator, dtype=torch.float64)
