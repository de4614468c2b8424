"""Every distribution of the library, in small sizes, with its enumeration."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from foveal.distributions import (
    Alignment,
    Categorical,
    Entmax,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanningTree,
    SpanTree,
    SparseChain,
    Sparsemax,
    Subset,
)
from tests.structures.enumeration import (
    Structure,
    bracketings,
    choices,
    dependency_trees,
    labelings,
    monotone_choices,
    paths,
    segmentations,
    spellings,
    subsets,
)
from tests.structures.truth import Listed, Truth, dense, listed, sparse_chain, sparse_choice

TARGETS = [1, 1, 2]  # two equal labels need a blank between them


@dataclass(frozen=True)
class Kind:
    """One distribution. The library is called as `make(*potentials, *masks)`; masks may be None."""

    make: Callable[..., Any]
    every: Callable[..., Iterable[Structure]]  # structures of an item, from its masks
    shapes: tuple[tuple[int, ...], ...]  # shapes of the potentials, without batch
    masks: tuple[int, ...]  # sizes of the masks
    event: tuple[int, ...]
    boolean: bool = False  # whether a value is boolean
    marginals: tuple[int, ...] = ()  # shape, if not the first potential's
    shared: tuple[int, ...] = ()  # potentials without a batch axis
    # Whether unread entries may be NaN on padded rows only: CTC reads entries of its lattice that
    # no path can reach.
    reads_rows: bool = False
    solve: Callable[..., Truth] = dense

    @property
    def is_sparse(self) -> bool:
        return self.solve is not dense

    def shape_of_marginals(self) -> tuple[int, ...]:
        return self.marginals or self.shapes[0]

    def listed(self, masks: tuple[Tensor, ...]) -> Listed:
        """Enumerate the structures of an item with these masks."""
        return _listed(self, tuple(tuple(mask.tolist()) for mask in masks))


@cache
def _listed(kind: Kind, masks: tuple[tuple[bool, ...], ...]) -> Listed:
    found = kind.every(*(torch.tensor(mask, dtype=torch.bool) for mask in masks))
    dtype = torch.bool if kind.boolean else torch.long
    return listed(found, kind.shapes, kind.event, kind.shape_of_marginals(), dtype)


def _tree(make: Any, **how: bool) -> Callable[..., Any]:
    return lambda arcs, mask: make(arcs, mask=mask, **how)


def _dependency(make: Any, size: int, *, single_root: bool) -> Kind:
    projective = make is ProjectiveTree
    every = partial(dependency_trees, single_root=single_root, projective=projective)
    return Kind(
        _tree(make, single_root=single_root), every, ((size + 1, size + 1),), (size,), (size,)
    )


def _chain(length: int, states: int, make: Any = LinearChain, **how: Any) -> Kind:
    every = partial(labelings, num_states=states, shared=False)
    shapes = ((length, states), (length - 1, states, states))
    return Kind(make, every, shapes, (length,), (length,), **how)


def _bounded_chain(length: int, states: int) -> Kind:
    """Build a chain with start scores for each item, and transitions and end scores shared by all."""

    def make(*given: Any) -> LinearChain:
        unary, transitions, start, end, mask = given
        return LinearChain(unary, transitions, mask, start, end)

    every = partial(labelings, num_states=states, shared=True, bounded=True)
    shapes = ((length, states), (states, states), (states,), (states,))
    return Kind(make, every, shapes, (length,), (length,), shared=(1, 3))


def _choice(size: int, make: Any = Categorical, **how: Any) -> Kind:
    return Kind(make, choices, ((size,),), (size,), (), **how)


def _segments(length: int, longest: int, labels: int) -> Kind:
    every = partial(segmentations, longest=longest, num_labels=labels)
    shapes = ((length, longest, labels), (length - 1, labels, labels))
    return Kind(SemiMarkov, every, shapes, (length,), (length,))


def _spans(size: int, labels: int | None = None) -> Kind:
    shape = (size, size) if labels is None else (size, size, labels)
    make = partial(SpanTree, labeled=labels is not None)
    return Kind(
        make, partial(bracketings, num_labels=labels), (shape,), (size,), shape, boolean=True
    )


def _lattice(source: int, target: int) -> Kind:
    shape = (source + 1, target + 1, 3)
    return Kind(Alignment, paths, (shape,), (source, target), shape, boolean=True)


def _one_to_many(source: int, target: int) -> Kind:
    def make(scores: Tensor, source_mask: Tensor | None, target_mask: Tensor | None) -> Alignment:
        return Alignment.one_to_many(scores, source_mask=source_mask, target_mask=target_mask)

    shape = (source + 1, target + 1, 3)
    return Kind(
        make,
        monotone_choices,
        ((source, target),),
        (source, target),
        shape,
        boolean=True,
        marginals=shape,
    )


def _ctc(frames: int, targets: list[int]) -> Kind:
    def make(scores: Tensor, frame_mask: Tensor | None, target_mask: Tensor | None) -> Alignment:
        labels = torch.tensor(targets, device=scores.device)
        return Alignment.ctc(scores, labels, frame_mask=frame_mask, target_mask=target_mask)

    shape = (frames + 1, 2 * len(targets) + 2, 3)
    return Kind(
        make,
        partial(spellings, targets=targets),
        ((frames, 3),),
        (frames, len(targets)),
        shape,
        boolean=True,
        marginals=shape,
        reads_rows=True,
    )


def _k_subset(size: int, k: int) -> Kind:
    return Kind(
        lambda scores, mask: KSubset(scores, k, mask),
        partial(subsets, k=k),
        ((size,),),
        (size,),
        (size,),
        boolean=True,
    )


def _sparse(make: Any, size: int, alpha: float) -> Kind:
    return _choice(size, make, solve=partial(sparse_choice, alpha=alpha))


# Ordinary sizes. The kernels use other code above 10 (chain) and 12 (segments) states.
KINDS = {
    "Categorical": _choice(4),
    "Subset": Kind(Subset, subsets, ((4,),), (4,), (4,), boolean=True),
    "KSubset": _k_subset(5, 2),
    "LinearChain": _chain(4, 3),
    "LinearChain, shared": _bounded_chain(4, 3),
    "LinearChain, many states": _chain(2, 11),
    "SemiMarkov": _segments(4, 2, 2),
    "SemiMarkov, many labels": _segments(2, 2, 13),
    "Alignment": _lattice(2, 3),
    "Alignment.one_to_many": _one_to_many(3, 3),
    "Alignment.ctc": _ctc(5, TARGETS),
    "ProjectiveTree": _dependency(ProjectiveTree, 4, single_root=True),
    "ProjectiveTree, any roots": _dependency(ProjectiveTree, 3, single_root=False),
    "SpanningTree": _dependency(SpanningTree, 4, single_root=True),
    "SpanningTree, any roots": _dependency(SpanningTree, 3, single_root=False),
    "SpanTree": _spans(4),
    "SpanTree, labeled": _spans(3, 2),
    "Sparsemax": _sparse(Sparsemax, 4, 2.0),
    "Entmax 1.5": _sparse(Entmax, 4, 1.5),
    "Entmax 1.3": _sparse(partial(Entmax, alpha=1.3), 4, 1.3),
    "SparseChain": _chain(3, 3, SparseChain, solve=partial(sparse_chain, alpha=2.0)),
}
# The smallest sizes.
SINGLE = {
    "Categorical": _choice(1),
    "Subset": Kind(Subset, subsets, ((1,),), (1,), (1,), boolean=True),
    "KSubset": _k_subset(1, 1),
    "LinearChain": _chain(1, 1),
    "LinearChain, shared": _bounded_chain(1, 2),
    "LinearChain, many states": _chain(1, 11),
    "SemiMarkov": _segments(1, 1, 1),
    "SemiMarkov, many labels": _segments(1, 1, 13),
    "Alignment": _lattice(1, 1),
    "Alignment.one_to_many": _one_to_many(1, 1),
    "Alignment.ctc": _ctc(1, [1]),
    "ProjectiveTree": _dependency(ProjectiveTree, 1, single_root=True),
    "ProjectiveTree, any roots": _dependency(ProjectiveTree, 1, single_root=False),
    "SpanningTree": _dependency(SpanningTree, 1, single_root=True),
    "SpanningTree, any roots": _dependency(SpanningTree, 1, single_root=False),
    "SpanTree": _spans(1),
    "SpanTree, labeled": _spans(1, 1),
    "Sparsemax": _sparse(Sparsemax, 1, 2.0),
    "Entmax 1.5": _sparse(Entmax, 1, 1.5),
    "Entmax 1.3": _sparse(partial(Entmax, alpha=1.3), 1, 1.3),
    "SparseChain": _chain(1, 1, SparseChain, solve=partial(sparse_chain, alpha=2.0)),
}
