"""SpanningTree against the laws, determinants in high precision, and float64 at n = 80."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import mpmath
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from foveal.distributions import SpanningTree
from foveal.errors import ImpossibleError, ShapeError, ValueRangeError
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow

laws = settings(max_examples=4, deadline=None, derandomize=True)


def is_tree(heads: dict[int, int]) -> bool:
    ends = list(heads)
    for _ in heads:
        ends = [heads.get(word, 0) for word in ends]
    return not any(ends)


def trees(
    arcs: Tensor, mask: Tensor | None, *, single_root: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    num_words = len(arcs) - 1
    real = [d for d in range(1, num_words + 1) if mask is None or mask[d - 1]]
    for chosen in product([0, *real], repeat=len(real)):
        heads = dict(zip(real, chosen, strict=True))
        if not is_tree(heads) or (single_root and real and chosen.count(0) != 1):
            continue
        value = torch.tensor([heads.get(d, -1) for d in range(1, num_words + 1)])
        yield value, sum((arcs[h, d] for d, h in heads.items()), arcs.new_zeros(()))


@st.composite
def masks(draw: st.DrawFn, batch: int, size: int) -> Tensor | None:
    """None, or any pattern: right padding, left padding, holes, only padding."""
    if draw(st.booleans()):
        return None
    bits = draw(st.lists(st.booleans(), min_size=batch * size, max_size=batch * size))
    return torch.tensor(bits).reshape(batch, size)


@pytest.mark.parametrize("single_root", [True, False])
@laws
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_laws(
    single_root: bool, data: st.DataObject, batch: int, num_words: int, seed: int
) -> None:
    mask = data.draw(masks(batch, num_words))
    torch.manual_seed(seed)
    arcs = torch.randn(batch, num_words + 1, num_words + 1, dtype=torch.float64)
    build = partial(SpanningTree, single_root=single_root)
    check_distribution(build, [arcs], mask, structures=partial(trees, single_root=single_root))


@pytest.mark.parametrize("single_root", [True, False])
def test_four_words_obey_the_laws(single_root: bool) -> None:
    torch.manual_seed(0)
    arcs = torch.randn(2, 5, 5, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, False, True, True]])
    build = partial(SpanningTree, single_root=single_root)
    check_distribution(build, [arcs], mask, structures=partial(trees, single_root=single_root))


@pytest.mark.parametrize("single_root", [True, False])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.floats(0.1, 0.8), st.integers(0, 9999))
def test_forbidden_arcs(single_root: bool, num_words: int, share: float, seed: int) -> None:
    """Sparse graphs have forced roots, closed groups of words, no tree at all, or many ties."""
    torch.manual_seed(seed)
    arcs = torch.randint(-1, 2, (num_words + 1, num_words + 1)).double()
    arcs = torch.where(torch.rand_like(arcs) < share, -torch.inf, arcs).requires_grad_()
    found = SpanningTree(arcs, single_root=single_root)
    scores = [score for _, score in trees(arcs, None, single_root=single_root) if score.isfinite()]
    if not scores:
        assert found.log_partition() == -torch.inf
        assert not found.marginals().any()
        for verb in (found.argmax, found.sample):
            with pytest.raises(ImpossibleError):
                verb()
        return
    log_partition = torch.stack(scores).logsumexp(0)
    (marginals,) = torch.autograd.grad(log_partition, arcs)
    torch.testing.assert_close(found.log_partition(), log_partition)
    torch.testing.assert_close(found.marginals(), marginals)
    assert found.score(found.argmax()) == max(score.item() for score in scores)
    assert found.score(found.sample((20,))).isfinite().all()


def laplacian_log_partition(arcs: Tensor, *, single_root: bool) -> float:
    """Return log Z by the matrix-tree theorem in 400 digits (Koo et al. 2007, equations 5 and 9)."""
    n = len(arcs) - 1
    with mpmath.workdps(400):
        weights = [[mpmath.exp(mpmath.mpf(score)) for score in row] for row in arcs.tolist()]
        laplacian = mpmath.matrix(n, n)
        for d in range(1, n + 1):
            for h in range(0 if not single_root else 1, n + 1):
                if h != d:
                    laplacian[d - 1, d - 1] += weights[h][d]
                    if h > 0:
                        laplacian[h - 1, d - 1] -= weights[h][d]
            if single_root:
                laplacian[0, d - 1] = weights[0][d]
        return float(mpmath.log(mpmath.det(laplacian)))


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
def test_twenty_words_padded_to_110_against_high_precision(single_root: bool, scale: float) -> None:
    torch.manual_seed(0)
    arcs = torch.randn(21, 21, dtype=torch.float64) * scale
    truth = laplacian_log_partition(arcs, single_root=single_root)
    alone = SpanningTree(arcs, single_root=single_root)
    assert alone.log_partition().item() == pytest.approx(truth, rel=1e-13, abs=1e-11)
    place = torch.randperm(110)[:20]
    mask = torch.zeros(110, dtype=torch.bool)
    mask[place] = True
    nodes = torch.cat([torch.zeros(1, dtype=torch.long), place + 1])
    padded = torch.full((111, 111), torch.nan, dtype=torch.float64)
    padded[nodes.unsqueeze(-1), nodes] = arcs
    tree = SpanningTree(padded, single_root=single_root, mask=mask)
    assert tree.log_partition().item() == pytest.approx(truth, rel=1e-13, abs=1e-11)
    narrow = SpanningTree(padded.float(), single_root=single_root, mask=mask)
    assert narrow.log_partition().item() == pytest.approx(truth, rel=2e-7)
    inside = tree.marginals()[nodes.unsqueeze(-1), nodes]
    torch.testing.assert_close(inside, alone.marginals(), rtol=0, atol=1e-11)


@pytest.mark.parametrize("single_root", [True, False])
def test_single_precision_at_80_words(single_root: bool) -> None:
    torch.manual_seed(0)
    narrow = torch.empty(2, 81, 81).uniform_(-50, 50).requires_grad_()
    wide = narrow.detach().double().requires_grad_()
    upstream = torch.rand(2, 81, 81)
    marginals = [SpanningTree(arcs, single_root=single_root).marginals() for arcs in (narrow, wide)]
    grads = [
        torch.autograd.grad((found * upstream).sum(), arcs)[0].double()
        for found, arcs in zip(marginals, (narrow, wide), strict=True)
    ]
    assert (marginals[0] - marginals[1]).abs().max() < 3e-5
    assert (grads[0] - grads[1]).abs().max() < 5e-5
    torch.testing.assert_close(marginals[1].sum(1)[:, 1:], torch.ones(2, 80).double())


@pytest.mark.parametrize("single_root", [True, False])
def test_the_order_of_words_does_not_matter(single_root: bool) -> None:
    """Words are eliminated in their order, so another order is an independent computation."""
    torch.manual_seed(0)
    arcs = (torch.randn(2, 41, 41, dtype=torch.float64) * 30).requires_grad_()
    order = torch.cat([torch.zeros(1, dtype=torch.long), torch.randperm(40) + 1])
    upstream = torch.randn(2, 41, 41, dtype=torch.float64)
    found = SpanningTree(arcs, single_root=single_root).marginals()
    moved = SpanningTree(arcs[:, order][:, :, order], single_root=single_root).marginals()
    torch.testing.assert_close(found[:, order][:, :, order], moved, rtol=0, atol=1e-11)
    (grad,) = torch.autograd.grad((found * upstream).sum(), arcs)
    (other,) = torch.autograd.grad((moved * upstream[:, order][:, :, order]).sum(), arcs)
    torch.testing.assert_close(grad, other, rtol=0, atol=1e-11)


def test_trees_are_counted_by_cayley() -> None:
    for n in range(1, 30):
        arcs = torch.zeros(n + 1, n + 1, dtype=torch.float64)
        single, multi = SpanningTree(arcs), SpanningTree(arcs, single_root=False)
        assert single.log_partition().exp().item() == pytest.approx(n ** (n - 1), rel=1e-11)
        assert multi.log_partition().exp().item() == pytest.approx((n + 1) ** (n - 1), rel=1e-11)


@pytest.mark.parametrize("single_root", [True, False])
def test_best_and_samples_at_30_words(single_root: bool) -> None:
    """No tree beats the best; samples of a peaked distribution are the best tree."""
    torch.manual_seed(0)
    arcs = torch.randn(4, 31, 31, dtype=torch.float64)
    tree = SpanningTree(arcs, single_root=single_root)
    best = tree.score(tree.argmax())
    draws = tree.sample((50,))
    assert (tree.score(draws) <= best).all()
    # Compare the mean score of the samples with its expectation, within 5 standard errors.
    scores = tree.score(draws)
    expected = (tree.marginals() * arcs).sum((-2, -1))
    assert ((scores.mean(0) - expected).abs() < 5 * scores.std(0) / 50**0.5).all()
    sharp = SpanningTree(arcs * 1e5, single_root=single_root)
    assert torch.equal(sharp.sample(), sharp.argmax())
    assert torch.equal(sharp.argmax(), tree.argmax())
    values, log_probs = tree.topk(5)
    torch.testing.assert_close(log_probs, tree.log_prob(values))
    assert (log_probs.diff(dim=0) <= 0).all()


def test_heads_that_are_no_tree_are_an_error() -> None:
    tree = SpanningTree(torch.zeros(4, 4))
    for heads in ([2, 1, 0], [1, 0, 0], [0, 0, 1]):
        with pytest.raises(ValueRangeError, match=r"SpanningTree\.score"):
            tree.score(torch.tensor(heads))
    with pytest.raises(ShapeError, match="square"):
        SpanningTree(torch.zeros(1, 1))


def test_vmap_of_gradients_through_marginals() -> None:
    torch.manual_seed(0)
    arcs = torch.randn(3, 4, 4, dtype=torch.float64)
    upstream = torch.randn(4, 4, dtype=torch.float64)

    def loss(item: Tensor) -> Tensor:
        return (SpanningTree(item).marginals() * upstream).sum()

    leaves = arcs.clone().requires_grad_()
    (expected,) = torch.autograd.grad((SpanningTree(leaves).marginals() * upstream).sum(), leaves)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(arcs), expected)
