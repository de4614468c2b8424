"""Hard cases of the linear chain: extreme scores, long sequences, transforms of torch.func."""

import pytest
import torch
from torch import Tensor

from foveal.distributions import LinearChain
from foveal.errors import DerivativeError
from foveal.inference import chain_best, chain_marginals


def disjoint_chains(length: int) -> tuple[Tensor, Tensor]:
    """Two chains of two states each, joined only by -inf. One alternates +50, -50, the other -50,
    +50. Their totals are equal, so each has probability 1/2.
    """
    unary = torch.zeros(1, length, 4)
    unary[:, 0::2] = torch.tensor([50.0, 50.0, -50.0, -50.0])
    unary[:, 1::2] = torch.tensor([-50.0, -50.0, 50.0, 50.0])
    joined = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)).bool()
    return unary, torch.where(joined, 0.0, -torch.inf)[None, None]


@pytest.mark.parametrize("length", [2, 30, 1000])
def test_disjoint_chains_are_exact_in_float32(length: int) -> None:
    nodes, pairs = chain_marginals(*disjoint_chains(length))
    assert torch.equal(nodes, torch.full_like(nodes, 0.25))
    assert pairs.sum((-1, -2)).eq(1).all()
    assert torch.equal(pairs[..., :2, 2:], torch.zeros_like(pairs[..., :2, 2:]))


def uniform_scores(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    batch, length, states = 4, 1000, 10
    unary, transitions = uniform(batch, length, states), uniform(batch, length - 1, states, states)
    upstream = uniform(batch, length, states), uniform(batch, length - 1, states, states)
    scores = [(100 * part - 50).to(dtype).requires_grad_() for part in (unary, transitions)]
    return scores[0], scores[1], upstream[0].to(dtype), upstream[1].to(dtype)


def test_long_chains_of_wide_scores_are_accurate_in_float32() -> None:
    found = []
    for dtype in (torch.float32, torch.float64):
        unary, transitions, on_nodes, on_pairs = uniform_scores(dtype)
        nodes, pairs = chain_marginals(unary, transitions)
        ((nodes * on_nodes).sum() + (pairs * on_pairs).sum()).backward()
        found.append((nodes.detach(), pairs.detach(), unary.grad, transitions.grad))
    for narrow, wide, allowed in zip(*found, (1e-5, 1e-5, 3e-5, 3e-5), strict=True):
        assert narrow is not None
        assert wide is not None
        assert narrow.dtype == torch.float32
        assert (narrow.double() - wide).abs().max() < allowed


def test_a_third_derivative_is_an_error_and_not_a_zero() -> None:
    unary = torch.randn(2, 3, 2, requires_grad=True)
    marginals = LinearChain(unary, torch.zeros(2, 2)).marginals()
    (gradient,) = torch.autograd.grad(marginals.pow(2).sum(), unary, create_graph=True)
    with pytest.raises(DerivativeError, match="two derivatives"):
        gradient.sum().backward()


def test_shared_transitions_equal_the_same_at_every_position() -> None:
    torch.manual_seed(0)
    unary = torch.randn(3, 5, 4, dtype=torch.float64)
    shared = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 5) > 0.3
    upstream = torch.randn(3, 5, 4, dtype=torch.float64)
    (unary_shared,) = torch.autograd.grad(
        (LinearChain(unary, shared, mask).marginals() * upstream).sum(), shared
    )
    spread = shared.expand(4, 4, 4)  # (T-1, K, K), without a batch axis
    whole = LinearChain(unary, spread, mask)
    (unary_spread,) = torch.autograd.grad((whole.marginals() * upstream).sum(), shared)
    torch.testing.assert_close(unary_shared, unary_spread)
    torch.testing.assert_close(whole.entropy(), LinearChain(unary, shared, mask).entropy())
    value = whole.sample()
    torch.testing.assert_close(
        whole.log_prob(value), LinearChain(unary, shared, mask).log_prob(value)
    )


def test_pair_marginals_equal_the_gradient_in_the_transitions() -> None:
    torch.manual_seed(1)
    unary = torch.randn(3, 4, 3, dtype=torch.float64)
    transitions = torch.randn(3, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]]).bool()
    chain = LinearChain(unary, transitions, mask)
    (gradient,) = torch.autograd.grad(chain.log_partition().sum(), transitions)
    torch.testing.assert_close(chain.pair_marginals(), gradient)
    assert chain.pair_marginals()[1, 0].eq(0).all()  # a step that joins nothing
    torch.testing.assert_close(chain.pair_marginals()[0].sum(-2), chain.marginals()[0, 1:])


def test_more_steps_than_fit_one_chunk_of_edges() -> None:
    """K = 60 takes several chunks of edges; the ends of the chunks must join."""
    torch.manual_seed(2)
    unary, transitions = torch.randn(12, 9, 60).double(), torch.randn(1, 1, 60, 60).double()
    chain = LinearChain(unary, transitions[0, 0])
    alpha = unary[:, 0]
    for t in range(1, 9):
        alpha = (alpha.unsqueeze(-1) + transitions[0, 0] + unary[:, t].unsqueeze(-2)).logsumexp(-2)
    torch.testing.assert_close(chain.log_partition(), alpha.logsumexp(-1))
    torch.testing.assert_close(chain.marginals().sum(-1), torch.ones(12, 9).double())
    best = chain_best(unary, transitions)
    torch.testing.assert_close(best.scores[0], chain.score(best.labels[0]))


def test_vmap_and_grad_of_torch_func() -> None:
    torch.manual_seed(3)
    unary, transitions = torch.randn(4, 3, 5, 2), torch.randn(2, 2)
    mask = torch.rand(3, 5) > 0.3

    def loss(unary: Tensor) -> Tensor:
        chain = LinearChain(unary, transitions, mask)
        return chain.marginals()[..., 1].pow(2).sum() + chain.log_partition().sum()

    leaf = unary.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(leaf), leaf)
    found = torch.func.vmap(torch.func.grad(loss))(unary)
    torch.testing.assert_close(found, expected)
