"""The tree adapters of other libraries compute the same quantities: equal numbers on small inputs."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from benchmarks import tree_accuracy, tree_peers
from benchmarks.cases import Model
from benchmarks.tree_peers import TorchStructSpanning
from foveal.distributions import ProjectiveTree, SpanningTree, SpanTree

BATCH, SIZE = 3, 6
LOOSE = 1e-5  # supar's matrix-tree returns float32, torch-struct's adds 1e-5 to every weight


@dataclass(frozen=True)
class Pair:
    """Our distribution and a peer's distribution on the same square scores."""

    name: str
    ours: Callable[[Tensor], ProjectiveTree | SpanningTree | SpanTree]
    theirs: Callable[[Tensor], Model]
    layout: Callable[[Tensor], Tensor]
    tolerance: float = 1e-9


def projective(arcs: Tensor) -> ProjectiveTree:
    return ProjectiveTree(arcs, single_root=False)


def spanning(arcs: Tensor) -> SpanningTree:
    return SpanningTree(arcs, single_root=False)


ON_DIAGONAL, WORD_FIRST = tree_peers.root_on_diagonal, tree_peers.word_first
PAIRS = (
    Pair("ts projective", projective, tree_peers.torch_struct_projective, ON_DIAGONAL),
    Pair("ts spanning", spanning, TorchStructSpanning, ON_DIAGONAL, 10 * LOOSE),
    Pair("ts spans", SpanTree, tree_peers.torch_struct_spans, tree_peers.one_label),
    Pair("supar projective", projective, tree_peers.supar_projective, WORD_FIRST),
    Pair("supar spanning", spanning, tree_peers.supar_spanning, WORD_FIRST, LOOSE),
    Pair("supar spans", SpanTree, tree_peers.supar_spans, tree_peers.between_fence_posts),
)
every_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


@pytest.fixture
def scores() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH, SIZE, SIZE, generator=generator, dtype=torch.float64)


def close(ours: Tensor, theirs: Tensor, tolerance: float) -> bool:
    return ours.shape == theirs.shape and bool((ours - theirs).abs().max() < tolerance)


@every_pair
def test_sums_and_marginals_agree(pair: Pair, scores: Tensor) -> None:
    ours, theirs = pair.ours(scores), pair.theirs(pair.layout(scores))
    assert close(ours.log_partition(), theirs.log_partition(), pair.tolerance)
    assert close(pair.layout(ours.marginals()), theirs.marginals(), pair.tolerance)


@every_pair
def test_gradients_through_marginals_agree(pair: Pair, scores: Tensor) -> None:
    weights = torch.randn_like(scores)
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    (pair.ours(ours).marginals() * weights).sum().backward()
    marginals = pair.theirs(pair.layout(theirs)).marginals()
    (marginals * pair.layout(weights)).sum().backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    assert close(ours.grad, theirs.grad, pair.tolerance)


@pytest.mark.parametrize("pair", [PAIRS[0], PAIRS[2]], ids=lambda pair: pair.name)
def test_torch_struct_agrees_on_the_best_tree(pair: Pair, scores: Tensor) -> None:
    ours, theirs = pair.ours(scores), pair.theirs(pair.layout(scores)).argmax()
    assert isinstance(theirs, Tensor)
    assert torch.equal(pair.layout(ours.indicators(ours.argmax())).to(theirs.dtype), theirs)


@pytest.mark.parametrize("pair", [PAIRS[3], PAIRS[4]], ids=lambda pair: pair.name)
def test_supar_agrees_on_the_best_heads(pair: Pair, scores: Tensor) -> None:
    theirs = pair.theirs(pair.layout(scores)).argmax()
    assert isinstance(theirs, Tensor)
    assert torch.equal(pair.ours(scores).argmax(), theirs[:, 1:])


def test_supar_agrees_on_the_best_spans(scores: Tensor) -> None:
    theirs = tree_peers.supar_spans(tree_peers.between_fence_posts(scores)).argmax()
    for ours, spans in zip(SpanTree(scores).argmax(), theirs, strict=True):
        assert {(i, j + 1) for i, j in ours.nonzero().tolist()} == {(i, j) for i, j in spans}


def test_supar_leaves_the_scores_as_they_are(scores: Tensor) -> None:
    given = scores.clone()
    tree_peers.supar_spanning(given).argmax()
    assert torch.equal(given, scores)
    assert not given.requires_grad


def test_torch_struct_draws_trees(scores: Tensor) -> None:
    draws = tree_peers.torch_struct_projective(tree_peers.root_on_diagonal(scores)).sample((1,))
    assert draws.shape == (1, BATCH, SIZE - 1, SIZE - 1)
    assert torch.equal(draws.sum(-2), torch.ones(1, BATCH, SIZE - 1, dtype=draws.dtype))


def test_the_truth_about_trees_is_the_truth(scores: Tensor) -> None:
    arcs, spans = projective(scores), SpanTree(scores)
    assert close(tree_accuracy.projective_log_partition(scores), arcs.log_partition(), 1e-9)
    assert close(tree_accuracy.span_log_partition(scores), spans.log_partition(), 1e-9)
