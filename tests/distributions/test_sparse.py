"""Sparsemax, Entmax and SparseChain: optimal by certificate, derivatives by finite differences."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from foveal.distributions import Categorical, Entmax, LinearChain, SparseChain, Sparsemax
from foveal.distributions._sparse import AbstractSparseDistribution
from foveal.errors import DerivativeError, ImpossibleError, ShapeError, ValueRangeError

pytestmark = pytest.mark.slow

ALPHAS = [1.2, 1.5, 2.0, 2.5]
cases = settings(max_examples=12, deadline=None, derandomize=True)


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def assert_equal(found: Tensor, expected: Tensor) -> None:
    """Assert equality up to float64 rounding."""
    assert_close(found, expected, rtol=1e-9, atol=1e-9)


def assert_optimal(scores: Tensor, p: Tensor, alpha: float) -> None:
    """Assert that p maximizes <p, scores> - Omega(p) over the simplex. The Karush-Kuhn-Tucker
    conditions are sufficient: scores - gradient of Omega is constant on the support, and not higher
    outside. The gradient of Omega is p^(alpha - 1) / (alpha - 1).
    """
    assert (p >= 0).all()
    assert_equal(p.sum(), torch.tensor(1.0, dtype=p.dtype))
    slack = scores - p ** (alpha - 1) / (alpha - 1)
    inside = slack[p > 0]
    assert_equal(inside, inside.mean().expand_as(inside))
    assert (slack[p == 0] <= inside.mean() + 1e-9).all()


def smoothed(scores: Tensor, p: Tensor, alpha: float) -> Tensor:
    """Return <p, scores> - Omega(p), written out."""
    held = torch.where(p > 0, scores, 0.0)
    return (p * held).sum() - ((p**alpha).sum() - 1) / (alpha * (alpha - 1))


# One choice


@cases
@given(st.sampled_from(ALPHAS), st.integers(1, 7), st.integers(0, 99), st.sampled_from([0.3, 1, 9]))
def test_entmax_is_the_maximum(alpha: float, size: int, seed: int, scale: float) -> None:
    scores = gaussian(size, seed=seed) * scale
    choice = Entmax(scores, alpha=alpha)
    assert_optimal(scores, choice.marginals(), alpha)
    assert_equal(choice.smoothed_max(), smoothed(scores, choice.marginals(), alpha))


def test_sparsemax_has_the_value_of_mensch_and_blondel() -> None:
    choice = Sparsemax(torch.tensor([1.0, 0.6, 0.1]))
    assert_close(choice.marginals(), torch.tensor([0.7, 0.3, 0.0]))
    assert_close(choice.smoothed_max() - 0.5, torch.tensor(0.59))
    assert choice.support().tolist() == [True, True, False]


def test_sorting_and_halving_agree() -> None:
    scores = gaussian(50, 30) * 2
    for alpha in (1.5, 2.0):
        exact, near = Entmax(scores, alpha=alpha), Entmax(scores, alpha=alpha + 1e-13)
        assert_close(exact.marginals(), near.marginals(), rtol=0, atol=1e-11)
    assert_close(Sparsemax(scores).marginals(), Entmax(scores, alpha=2.0).marginals())


def test_entmax_near_one_is_softmax() -> None:
    scores = gaussian(4, 6)
    near, soft = Entmax(scores, alpha=1 + 1e-6), Categorical(scores)
    assert_close(near.marginals(), soft.marginals(), rtol=0, atol=1e-5)
    assert_close(near.smoothed_max(), soft.log_partition(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_entmax_derivatives(alpha: float) -> None:
    scores = gaussian(5, 6).requires_grad_()
    mask = torch.rand(5, 6, generator=torch.Generator().manual_seed(1)) < 0.7

    def maximum(scores: Tensor) -> Tensor:
        return Entmax(scores, mask, alpha=alpha).smoothed_max()

    def marginals(scores: Tensor) -> Tensor:
        return Entmax(scores, mask, alpha=alpha).marginals()

    def entropy(scores: Tensor) -> Tensor:
        return Entmax(scores, mask, alpha=alpha).entropy()

    for function in (maximum, marginals, entropy):
        assert gradcheck(function, scores, fast_mode=True)
    assert gradgradcheck(maximum, scores, fast_mode=True)
    (grad,) = torch.autograd.grad(maximum(scores).sum(), scores)
    assert_equal(grad, marginals(scores))


# Chains


def reference_chain(
    unary: Tensor, transitions: Tensor, mask: Tensor, alpha: float
) -> tuple[Tensor, Tensor, Tensor, dict[tuple[int, ...], float]]:
    """Run the recursion in plain loops over real positions: the maximum, nodes, pairs, and p(y)."""
    length, num_states = unary.shape
    real = [t for t in range(length) if mask[t]]
    nodes, pairs = torch.zeros_like(unary), torch.zeros_like(transitions)
    if not real:
        return unary.new_zeros(()), nodes, pairs, {(): 1.0}
    inside = unary[real[0]]
    tables = []
    for t in real[1:]:
        steps = [Entmax(inside + transitions[t - 1, :, j], alpha=alpha) for j in range(num_states)]
        tables.append(torch.stack([step.marginals() for step in steps]))  # [j, i]
        inside = unary[t] + torch.stack([step.smoothed_max() for step in steps])
    last = Entmax(inside, alpha=alpha)
    probabilities = {}
    for states in product(range(num_states), repeat=len(real)):
        p = last.marginals()[states[-1]]
        for place, table in enumerate(tables):
            p = p * table[states[place + 1], states[place]]
        probabilities[states] = p.item()
        for place, t in enumerate(real):
            nodes[t, states[place]] += p
            if place > 0:
                pairs[t - 1, states[place - 1], states[place]] += p
    return last.smoothed_max(), nodes, pairs, probabilities


@cases
@given(st.data(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99), st.sampled_from(ALPHAS))
def test_sparse_chain_is_its_recursion(
    data: st.DataObject, length: int, num_states: int, seed: int, alpha: float
) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    mask = torch.stack([torch.ones(length, dtype=torch.bool), torch.tensor(bits)])
    unary = gaussian(2, length, num_states, seed=seed)
    transitions = gaussian(2, length - 1, num_states, num_states, seed=seed + 1)
    chain = SparseChain(unary, transitions, mask, alpha=alpha)
    nodes, pairs = chain.marginals(), chain.pair_marginals()
    for item in range(2):
        maximum, true_nodes, true_pairs, probabilities = reference_chain(
            unary[item], transitions[item], mask[item], alpha
        )
        assert_equal(chain.smoothed_max()[item], maximum)
        assert_equal(nodes[item], true_nodes)
        assert_equal(pairs[item], true_pairs)

        alone = SparseChain(unary[item], transitions[item], mask[item], alpha=alpha)
        labels = torch.full((len(probabilities), length), -1)
        states = torch.tensor(list(probabilities), dtype=torch.long)
        labels[:, mask[item]] = states.reshape(len(labels), -1)
        true = torch.tensor(list(probabilities.values()), dtype=torch.float64)
        assert_equal(alone.log_prob(labels).exp(), true)
        held = true[true > 0]
        assert_equal(alone.entropy(), -(held * held.log()).sum())
        assert_equal(alone.topk(1).log_probs[0].exp(), true.max())
        assert_equal(alone.log_prob(alone.argmax()).exp(), true.max())
        parts = alone.indicators(labels)
        assert_equal(torch.tensordot(true, parts, 1), nodes[item])


@pytest.mark.parametrize("alpha", [1.5, 1.7, 2.0])
@pytest.mark.parametrize("shared", [False, True])
def test_sparse_chain_derivatives(alpha: float, shared: bool) -> None:
    unary = gaussian(3, 4, 2, seed=3).requires_grad_()
    shape = (2, 2) if shared else (3, 3, 2, 2)
    transitions = gaussian(*shape, seed=4).requires_grad_()
    mask = torch.tensor([[True] * 4, [True, False, True, True], [False, True, True, False]])

    def maximum(unary: Tensor, transitions: Tensor) -> Tensor:
        return SparseChain(unary, transitions, mask, alpha=alpha).smoothed_max()

    def marginals(unary: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
        chain = SparseChain(unary, transitions, mask, alpha=alpha)
        return chain.marginals(), chain.pair_marginals()

    leaves = (unary, transitions)
    for function in (maximum, marginals):  # fast_mode: along random directions
        assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(maximum, leaves, fast_mode=True)
    (grad,) = torch.autograd.grad(maximum(*leaves).sum(), unary)
    assert_equal(grad, marginals(*leaves)[0])


def test_sparse_chain_of_one_position_is_entmax() -> None:
    scores = gaussian(4, 1, 5)
    for alpha in ALPHAS:
        chain = SparseChain(scores, torch.zeros(5, 5).double(), alpha=alpha)
        choice = Entmax(scores[:, 0], alpha=alpha)
        assert_close(chain.marginals()[:, 0], choice.marginals())
        assert_close(chain.smoothed_max(), choice.smoothed_max())


def test_sparse_chain_near_one_is_the_linear_chain() -> None:
    unary, transitions = gaussian(3, 5, 3), gaussian(3, 3, seed=1)
    near, gibbs = SparseChain(unary, transitions, alpha=1 + 1e-6), LinearChain(unary, transitions)
    assert_close(near.marginals(), gibbs.marginals(), rtol=0, atol=1e-5)
    assert_close(near.smoothed_max(), gibbs.log_partition(), rtol=0, atol=1e-5)


def test_sparse_chain_is_sparse_and_reads_in_one_direction() -> None:
    unary, transitions = gaussian(20, 6, 4), gaussian(4, 4, seed=1)
    chain = SparseChain(unary, transitions)
    ones = torch.ones(20, 6, dtype=torch.float64)
    assert_equal(chain.marginals().sum(-1), ones)
    assert chain.support().double().mean() < 0.6
    reverse = SparseChain(unary.flip(1), transitions.T).marginals().flip(1)
    assert not torch.allclose(chain.marginals(), reverse)


# Laws of every sparse distribution


def both(scores: Tensor, mask: Tensor | None = None) -> list[AbstractSparseDistribution]:
    """Return a choice and a chain on the same numbers (B, T, K) with a mask (B, T)."""
    choice_mask = None if mask is None else mask.unsqueeze(-1).expand_as(scores).flatten(1)
    transitions = torch.zeros(scores.shape[-1], scores.shape[-1], dtype=scores.dtype)
    return [Sparsemax(scores.flatten(1), choice_mask), SparseChain(scores, transitions, mask)]


def outcomes(scores: Tensor, mask: Tensor | None, which: int) -> list[Tensor]:
    leaf = scores.clone().requires_grad_()
    distribution = both(leaf, mask)[which]
    marginals = distribution.marginals()
    weight = torch.linspace(-1, 1, marginals.shape[-1], dtype=marginals.dtype)
    (grad,) = torch.autograd.grad((marginals * weight).sum(), leaf)
    return [distribution.smoothed_max().detach(), marginals.detach(), grad]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("junk", [torch.nan, torch.inf, -torch.inf, 1e30])
def test_padding_changes_nothing(which: int, junk: float) -> None:
    scores = gaussian(3, 4, 2)
    mask = torch.tensor([[True, False, True, True], [False, True, False, False], [False] * 4])
    clean = outcomes(scores, mask, which)
    dirty = outcomes(torch.where(mask.unsqueeze(-1), scores, junk), mask, which)
    for one, other in zip(clean, dirty, strict=True):
        assert torch.equal(one, other)


def test_padding_of_transitions_changes_nothing() -> None:
    unary, transitions = gaussian(1, 4, 2), gaussian(1, 3, 2, 2, seed=1)
    mask = torch.tensor([[False, True, False, True]])
    unread = torch.tensor([True, True, False])[None, :, None, None]
    clean = SparseChain(unary, transitions, mask).pair_marginals()
    dirty = SparseChain(unary, torch.where(unread, torch.nan, transitions), mask).pair_marginals()
    assert torch.equal(clean, dirty)


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_forbidden_has_probability_and_gradient_zero(which: int) -> None:
    scores = gaussian(2, 4, 3)
    forbidden = torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(0)) < 0.4
    forbidden[..., 0] = False
    _, marginals, grad = outcomes(torch.where(forbidden, -torch.inf, scores), None, which)
    assert not marginals.reshape_as(scores)[forbidden].any()
    assert not grad[forbidden].any()
    assert grad.isfinite().all()


@pytest.mark.parametrize("which", [0, 1])
def test_nothing_possible(which: int) -> None:
    scores = torch.full((1, 3, 2), -torch.inf)
    maximum, marginals, grad = outcomes(scores, None, which)
    assert (maximum == -torch.inf).all()
    assert not marginals.any()
    assert not grad.any()
    for verb in (both(scores)[which].argmax, both(scores)[which].sample):
        with pytest.raises(ImpossibleError):
            verb()


@pytest.mark.parametrize("which", [0, 1])
def test_batches_dtypes_and_large_scores(which: int) -> None:
    scores = gaussian(6, 4, 3)
    whole = both(scores)[which].marginals()
    for item in range(6):
        assert_equal(both(scores[item : item + 1])[which].marginals()[0], whole[item])
    # Multiples of 1/8 are exact in both precisions, also when they are large.
    for scale in (1.0, 1e4):
        wide = (scores * scale).mul(8).round().div(8)
        for one, other in zip(
            outcomes(wide, None, which), outcomes(wide.float(), None, which), strict=True
        ):
            assert other.dtype == torch.float32
            assert_close(other.double(), one, rtol=1e-6, atol=1e-6)
    assert both(scores.bfloat16())[which].marginals().dtype == torch.float32


def test_any_leading_shape() -> None:
    unary, transitions = gaussian(2, 3, 4, 2), gaussian(3, 3, 2, 2, seed=1)
    mask = torch.tensor([True, True, False, True])
    chain = SparseChain(unary, transitions, mask)
    assert chain.batch_shape == (2, 3)
    assert chain.sample((5, 1)).shape == (5, 1, 2, 3, 4)
    alone = SparseChain(unary[1, 2], transitions[2], mask)
    assert_equal(chain.marginals()[1, 2], alone.marginals())
    assert_equal(chain.smoothed_max()[1, 2], alone.smoothed_max())
    choice = Entmax(unary, torch.ones(3, 1, 2, dtype=torch.bool))
    assert choice.marginals().shape == unary.shape


def test_samples_stay_in_the_support() -> None:
    unary, transitions = gaussian(2, 4, 3), gaussian(3, 3, seed=1)
    chain = SparseChain(unary, transitions)
    samples = chain.sample((4000,), generator=torch.Generator().manual_seed(0))
    frequencies = chain.indicators(samples).mean(0)
    assert not frequencies[~chain.support()].any()
    # Six standard deviations of a frequency: for each of 24 parts, one seed in 10^8 would fail.
    deviation = (chain.marginals() * (1 - chain.marginals()) / 4000).sqrt()
    assert ((frequencies - chain.marginals()).abs() <= 6 * deviation + 1e-12).all()


def test_the_third_derivative_is_an_error() -> None:
    scores = gaussian(2, 3, 2).requires_grad_()
    for distribution in both(scores):
        loss = (distribution.marginals() ** 2).sum()
        (grad,) = torch.autograd.grad(loss, scores, create_graph=True)
        with pytest.raises(DerivativeError, match="one more"):
            torch.autograd.grad(grad.sum(), scores)


def test_vmap() -> None:
    unary, transitions = gaussian(3, 4, 2), gaussian(2, 2, seed=1)

    def loss(unary: Tensor) -> Tensor:
        chain, choice = SparseChain(unary, transitions), Sparsemax(unary[:, 0])
        return (chain.marginals() ** 2).sum() + choice.marginals()[0]

    mapped = torch.vmap(torch.func.grad(loss))(unary)
    for item in range(3):
        assert_equal(mapped[item], torch.func.grad(loss)(unary[item]))


def test_wrong_arguments() -> None:
    with pytest.raises(ValueRangeError, match="alpha must be above 1"):
        Entmax(torch.zeros(3), alpha=1.0)
    with pytest.raises(ValueRangeError, match="alpha must be above 1"):
        SparseChain(torch.zeros(3, 2), torch.zeros(2, 2), alpha=torch.nan)
    with pytest.raises(ShapeError, match="Sparsemax: scores must have shape"):
        Sparsemax(torch.zeros(3, 0))
