"""Trees of arcs and trees of spans in Foveal and in other libraries.

All libraries get the same scores of N(0, 1), each in its own layout. Dependency trees may have several
roots, the form that all libraries support.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from foveal.distributions import ProjectiveTree, SpanningTree, SpanTree

from .cases import SEED, US, Case, Model, Side, Size, case_of
from .tree_peers import (
    TorchStructSpanning,
    between_fence_posts,
    one_label,
    root_on_diagonal,
    supar_projective,
    supar_spanning,
    supar_spans,
    torch_struct_projective,
    torch_struct_spans,
    word_first,
)


def projective_trees(size: Size) -> Case:
    """Projective dependency trees: arcs (B, n+1, n+1), marginals of the arcs."""
    batch, words = size
    arcs, weights = _drawn(batch, words + 1)

    def ours(scores: Tensor) -> ProjectiveTree:
        return ProjectiveTree(scores, single_root=False)

    return case_of(
        {
            US: Side(make=ours, potentials=(arcs,), weights=weights),
            "torch-struct": _side(torch_struct_projective, root_on_diagonal, arcs, weights),
            "supar": _side(supar_projective, word_first, arcs, weights, lacks=("sample",)),
        }
    )


def spanning_trees(size: Size) -> Case:
    """Dependency trees with or without crossing arcs, by the matrix-tree theorem."""
    batch, words = size
    arcs, weights = _drawn(batch, words + 1)

    def ours(scores: Tensor) -> SpanningTree:
        return SpanningTree(scores, single_root=False)

    return case_of(
        {
            US: Side(make=ours, potentials=(arcs,), weights=weights),
            "torch-struct": _side(
                TorchStructSpanning, root_on_diagonal, arcs, weights, lacks=("argmax", "sample")
            ),
            "supar": _side(supar_spanning, word_first, arcs, weights, lacks=("sample",)),
        }
    )


def span_trees(size: Size) -> Case:
    """Binary bracketings: spans (B, n, n) without labels, marginals of the spans."""
    batch, words = size
    spans, weights = _drawn(batch, words)
    return case_of(
        {
            US: Side(make=SpanTree, potentials=(spans,), weights=weights),
            "torch-struct": _side(torch_struct_spans, one_label, spans, weights),
            "supar": _side(supar_spans, between_fence_posts, spans, weights, lacks=("sample",)),
        }
    )


def _drawn(batch: int, size: int) -> tuple[Tensor, Tensor]:
    """Draw scores and weights of the loss, (batch, size, size) each."""
    torch.manual_seed(SEED)
    return torch.randn(batch, size, size), torch.randn(batch, size, size)


def _side(
    make: Callable[[Tensor], Model],
    layout: Callable[[Tensor], Tensor],
    scores: Tensor,
    weights: Tensor,
    lacks: tuple[str, ...] = (),
) -> Side:
    """Return a peer's side of a case, from scores and weights in our layout."""
    return Side(make=make, potentials=(layout(scores),), weights=layout(weights), lacks=lacks)
