"""KSubset against the laws, binomial coefficients, and float64 at n = 200."""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from foveal.distributions import Categorical, KSubset
from foveal.errors import ImpossibleError, ValueRangeError
from foveal.testing import check_distribution

pytestmark = pytest.mark.slow

laws = settings(max_examples=8, deadline=None, derandomize=True)


def subsets_of(k: int, scores: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor]]:
    real = [i for i in range(len(scores)) if mask is None or mask[i]]
    for chosen in combinations(real, k):
        value = torch.zeros(len(scores), dtype=torch.bool)
        value[list(chosen)] = True
        yield value, scores[value].sum()


def check(k: int, scores: Tensor, mask: Tensor | None) -> None:
    check_distribution(
        lambda scores, mask: KSubset(scores, k, mask),
        [scores],
        mask,
        structures=lambda scores, mask: subsets_of(k, scores, mask),
    )


@laws
@given(st.data(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 99))
def test_k_subset(data: st.DataObject, batch: int, size: int, seed: int) -> None:
    k = data.draw(st.integers(0, size))
    mask = None
    if data.draw(st.booleans()):
        bits = data.draw(st.lists(st.booleans(), min_size=batch * size, max_size=batch * size))
        # Every row keeps k items: with fewer, there is no structure and no sample.
        mask = torch.tensor(bits).reshape(batch, size) | (torch.arange(size) >= size - k)
    torch.manual_seed(seed)
    check(k, torch.randn(batch, size, dtype=torch.float64), mask)


@pytest.mark.parametrize("k", range(8))
def test_subsets_are_counted_by_binomial_coefficients(k: int) -> None:
    chosen = KSubset(torch.zeros(7, dtype=torch.float64), k)
    assert chosen.log_partition().exp().item() == pytest.approx(comb(7, k), rel=1e-12)
    torch.testing.assert_close(chosen.marginals(), torch.full((7,), k / 7, dtype=torch.float64))


def test_one_of_n_is_the_softmax() -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 11, dtype=torch.float64)
    torch.testing.assert_close(KSubset(scores, 1).marginals(), Categorical(scores).marginals())


def test_too_few_items_are_impossible() -> None:
    scores = torch.tensor([[1.0, 2.0, -torch.inf], [1.0, 2.0, 3.0]], requires_grad=True)
    for k, possible in ((3, [False, True]), (4, [False, False])):
        chosen = KSubset(scores, k)
        assert (chosen.log_partition() > -torch.inf).tolist() == possible
        assert chosen.marginals().sum(-1).tolist() == [k * one for one in possible]
        (grad,) = torch.autograd.grad(chosen.marginals().square().sum(), scores)
        assert not grad.any()
        assert (chosen.topk(2).log_probs[1] == -torch.inf).all()
        for verb in (chosen.argmax, chosen.sample):
            with pytest.raises(ImpossibleError):
                verb()


def test_float32_is_close_to_float64_for_20_of_200_items() -> None:
    torch.manual_seed(0)
    scores, upstream = torch.empty(4, 200).uniform_(-50, 50), torch.randn(4, 200)
    found = []
    for dtype in (torch.float32, torch.float64):
        leaf = scores.to(dtype).requires_grad_()
        marginals = KSubset(leaf, 20).marginals()
        (grad,) = torch.autograd.grad((marginals * upstream.to(dtype)).sum(), leaf)
        found.append((marginals.detach().double(), grad.double()))
    (marginals, grad), (true_marginals, true_grad) = found
    assert (marginals - true_marginals).abs().max() < 1e-5
    assert (grad - true_grad).abs().max() < 1e-5
    torch.testing.assert_close(true_marginals.sum(-1), torch.full((4,), 20.0).double())


def test_argmax_is_the_highest_scores() -> None:
    torch.manual_seed(0)
    scores = torch.randn(3, 100)
    chosen = KSubset(scores, 30).argmax()
    torch.testing.assert_close(
        scores[chosen].reshape(3, 30).sum(-1), scores.topk(30).values.sum(-1)
    )


def test_mapped_gradients_are_the_same() -> None:
    torch.manual_seed(0)
    scores, mask = (
        torch.randn(3, 5),
        torch.tensor([[True] * 5, [True, False, True, True, False], [True] * 5]),
    )

    def loss(one: Tensor, its_mask: Tensor) -> Tensor:
        return KSubset(one, 2, its_mask).marginals().square().sum()

    leaf = scores.clone().requires_grad_()
    (grad,) = torch.autograd.grad(loss(leaf, mask), leaf)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(scores, mask), grad)


def test_a_set_of_another_size_has_probability_zero() -> None:
    chosen = KSubset(torch.zeros(3), 2, mask=torch.tensor([True, True, False]))
    assert chosen.log_prob(torch.tensor([True, True, False])) == 0
    for value in ([True, False, False], [True, False, True], [True, True, True]):
        assert chosen.log_prob(torch.tensor(value)) == -torch.inf
    with pytest.raises(ValueRangeError, match="KSubset: k"):
        KSubset(torch.zeros(3), -1)
