"""Large negative scores such as -1e9 or the lowest float forbid a part exactly, as -inf does."""

from functools import partial
from itertools import product

import pytest
import torch
from torch import Tensor

from foveal.distributions import Alignment, LinearChain, SemiMarkov, SpanningTree, SpanTree

SENTINELS = (-1e4, -1e9, -1e12, -1e15, -1e16, -1e18, -1e19, -1e20, -1e30, None)
WORDS = 3


def all_heads(*, single_root: bool) -> Tensor:
    """Return the heads of every tree of three words."""
    chosen = torch.tensor(list(product(range(WORDS + 1), repeat=WORDS)))
    ends = torch.arange(1, WORDS + 1).expand_as(chosen)
    for _ in range(WORDS):
        ends = torch.where(ends == 0, 0, chosen.gather(-1, (ends - 1).clamp(min=0)))
    is_tree = (ends == 0).all(-1)
    if single_root:
        is_tree &= (chosen == 0).sum(-1) == 1
    return chosen[is_tree]


def enumerated(arcs: Tensor, *, single_root: bool) -> tuple[Tensor, Tensor]:
    """Return log Z (B,) and marginals (B, n+1, n+1), in float64."""
    heads = all_heads(single_root=single_root)
    scores = arcs.double()[:, heads, torch.arange(1, WORDS + 1)].sum(-1)
    log_partition = scores.logsumexp(-1)
    weights = (scores - log_partition.unsqueeze(-1)).exp()
    marginals = torch.zeros(arcs.shape, dtype=torch.float64)
    for word in range(WORDS):
        marginals[:, :, word + 1].index_add_(1, heads[:, word], weights)
    return log_partition, marginals


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sentinel", SENTINELS)
def test_arcs_with_a_sentinel_are_forbidden(
    sentinel: float | None, dtype: torch.dtype, single_root: bool
) -> None:
    generator = torch.Generator().manual_seed(0)
    arcs = 2 * torch.randn(200, WORDS + 1, WORDS + 1, generator=generator).to(dtype)
    forbidden = torch.rand(arcs.shape, generator=generator) < 0.5
    expected, marginals = enumerated(
        arcs.masked_fill(forbidden, -torch.inf), single_root=single_root
    )
    has_tree = expected > -torch.inf
    assert 20 < has_tree.sum() < 200
    given = arcs.masked_fill(forbidden, torch.finfo(dtype).min if sentinel is None else sentinel)
    leaf = given[has_tree].requires_grad_()
    tree = SpanningTree(leaf, single_root=single_root)
    rtol, atol = (1e-5, 2e-6) if dtype == torch.float32 else (1e-9, 1e-9)
    close = partial(torch.testing.assert_close, rtol=rtol, atol=atol)
    found = tree.log_partition()
    close(found.double(), expected[has_tree])
    close(tree.marginals().double(), marginals[has_tree])
    (gradient,) = torch.autograd.grad(tree.marginals().square().sum(), leaf)
    exact = arcs.masked_fill(forbidden, -torch.inf)[has_tree].double().requires_grad_()
    squares = SpanningTree(exact, single_root=single_root).marginals().square().sum()
    (expected_gradient,) = torch.autograd.grad(squares, exact)
    close(gradient.double(), expected_gradient)


@pytest.mark.parametrize("single_root", [True, False])
def test_a_tree_of_sentinels_alone_has_their_score(single_root: bool) -> None:
    """If every tree has a sentinel arc, log Z is the sentinel's score up to rounding."""
    for sentinel in (-1e4, -1e9, -1e12, -1e20, -1e30):
        arcs = torch.zeros(1, WORDS + 1, WORDS + 1, dtype=torch.float64)
        arcs[:, 0] = sentinel
        found = SpanningTree(arcs, single_root=single_root).log_partition()
        assert found.item() == pytest.approx(sentinel, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_move_with_the_lowest_number_is_forbidden(dtype: torch.dtype) -> None:
    moves = torch.zeros(2, 3, 3, 3, dtype=dtype)
    moves[:, 1, 1, 0] = torch.tensor([torch.finfo(dtype).min, -torch.inf])
    path = Alignment(moves)
    found, expected = path.log_partition()
    assert torch.equal(found, expected)
    assert found.item() == pytest.approx(2.302585, rel=1e-6)
    assert torch.equal(path.marginals()[0], path.marginals()[1])


@pytest.mark.parametrize("spread", [1e9, 3e9, 1e10])
def test_many_states_with_large_scores(spread: float) -> None:
    """float32 has no fractional digits at this size; scores near the maximum are recomputed."""
    generator = torch.Generator().manual_seed(0)
    unary = spread * torch.randn(200, 3, 14, generator=generator)
    table = spread * torch.randn(14, 14, generator=generator)
    segments = spread * torch.randn(200, 4, 2, 14, generator=generator)
    for narrow, wide in (
        (LinearChain(unary, table), LinearChain(unary.double(), table.double())),
        (SemiMarkov(segments, table), SemiMarkov(segments.double(), table.double())),
    ):
        expected = wide.log_partition()
        torch.testing.assert_close(narrow.log_partition().double(), expected, rtol=1e-6, atol=0.0)
        torch.testing.assert_close(
            narrow.marginals().double(), wide.marginals(), rtol=0.0, atol=1e-5
        )


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e4])
def test_a_constant_in_the_scores_of_labels_costs_no_digits(offset: float) -> None:
    generator = torch.Generator().manual_seed(0)
    spans = torch.randn(6, 7, 7, 3, generator=generator)
    mask = torch.arange(7) < torch.tensor([[7], [6], [3], [1], [0], [7]])
    moved = spans + offset
    exact = SpanTree(moved.double(), labeled=True, mask=mask)
    tree = SpanTree(moved, labeled=True, mask=mask)
    torch.testing.assert_close(tree.marginals().double(), exact.marginals(), rtol=0.0, atol=1e-6)
    expected = exact.log_partition()
    torch.testing.assert_close(tree.log_partition().double(), expected, rtol=1e-6, atol=1e-6)
