"""Perturb-and-MAP against its expectation, in closed form or by quadrature.

Each test compares an average of S independent estimates with the expectation. It allows six
standard errors, which a correct estimator exceeds once in 10^8 for each number compared.
"""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import AbstractDistribution, Categorical, LinearChain, Subset
from foveal.errors import DerivativeError, ImpossibleError, ValueRangeError
from foveal.estimators import perturb_and_map

NUM_SAMPLES = 20_000
SIX_SIGMA = 6.0
EULER_GAMMA = 0.5772156649015329


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def estimates(
    build: type[AbstractDistribution], *potentials: Tensor, direction: Tensor, step: float
) -> tuple[Tensor, list[Tensor]]:
    """Return S samples and S estimates of the gradient of <direction, m> in each potential.

    A batch of S copies of the potentials gives one estimate for each.
    """
    leaves = [part.expand(NUM_SAMPLES, *part.shape).clone().requires_grad_() for part in potentials]
    parts = perturb_and_map(build(*leaves), 1, step=step, generator=generator())[0]
    return parts.detach(), list(torch.autograd.grad((parts * direction).sum(), leaves))


def assert_mean(found: Tensor, expected: Tensor) -> None:
    error = found.std(0) / NUM_SAMPLES**0.5
    assert ((found.mean(0) - expected).abs() <= SIX_SIGMA * error + 1e-12).all()


@pytest.mark.parametrize("step", [0.1, 0.5])
def test_categorical_is_exact(step: float) -> None:
    """Gumbel noise and argmax give exact samples; the gradient is a difference of two softmaxes."""
    scores = torch.tensor([0.0, 1.0, -0.5, -torch.inf], dtype=torch.float64)
    direction = torch.tensor([1.0, -0.5, 0.25, 0.75], dtype=torch.float64)
    samples, (grads,) = estimates(Categorical, scores, direction=direction, step=step)
    assert_mean(samples, scores.softmax(-1))
    up, down = (scores + step * direction).softmax(-1), (scores - step * direction).softmax(-1)
    assert_mean(grads, (up - down) / (2 * step))
    assert not grads[:, 3].any()


def test_the_bias_is_of_second_order_in_the_step() -> None:
    """The expectation of the estimate is compared with the exact derivative."""
    scores = torch.tensor([0.0, 1.0, -0.5], dtype=torch.float64)
    direction = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
    p = scores.softmax(-1)
    derivative = p * (direction - (p * direction).sum())
    errors = []
    for step in (0.5, 0.25, 0.125):
        up, down = (scores + step * direction).softmax(-1), (scores - step * direction).softmax(-1)
        errors.append(((up - down) / (2 * step) - derivative).abs().max() / derivative.abs().max())
    assert errors[0] < 0.1
    assert errors[1] < errors[0] / 3.5
    assert errors[2] < errors[1] / 3.5


def test_subset_is_not_the_sigmoid() -> None:
    """An item is chosen if score + Gumbel - gamma > 0: 1 - exp(-exp(score - gamma))."""

    def chosen(scores: Tensor) -> Tensor:
        return 1 - torch.exp(-torch.exp(scores - EULER_GAMMA))

    scores = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
    direction = torch.tensor([1.0, -0.5, 0.25], dtype=torch.float64)
    samples, (grads,) = estimates(Subset, scores, direction=direction, step=0.5)
    assert_mean(samples, chosen(scores))
    up, down = chosen(scores + 0.5 * direction), chosen(scores - 0.5 * direction)
    assert_mean(grads, (up - down) / (2 * 0.5))
    assert (chosen(scores) - scores.sigmoid()).abs().max() > 0.05


def chain_by_quadrature(unary: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    """Return m of nodes and pairs for two positions with two states, by the midpoint rule.

    Only the difference of a position's two noise variables matters, and it is logistic: a grid over
    the two differences, equally spaced in probability, is a sum over all noise.
    """
    levels = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    noise = levels.logit()
    first = unary[0] + torch.stack([torch.zeros_like(noise), noise], -1)  # (G, 2)
    second = unary[1] + torch.stack([torch.zeros_like(noise), noise], -1)
    total = first[:, None, :, None] + second[None, :, None, :] + transitions
    best = total.flatten(2).argmax(-1).flatten()
    pairs = (torch.bincount(best, minlength=4).double() / len(best)).reshape(2, 2)
    return torch.stack([pairs.sum(1), pairs.sum(0)]), pairs


def test_chain_by_quadrature_with_the_gradient_of_its_transitions() -> None:
    """Only the unary scores get noise, but the gradient also reaches the transitions."""
    unary = torch.tensor([[0.3, 0.0], [0.0, 0.6]], dtype=torch.float64)
    transitions = torch.tensor([[[0.8, -0.4], [-0.2, 0.5]]], dtype=torch.float64)
    direction = torch.tensor([[1.0, -0.3], [0.2, -0.6]], dtype=torch.float64)
    step = 0.5
    samples, (on_unary, on_transitions) = estimates(
        LinearChain, unary, transitions, direction=direction, step=step
    )
    grid_error = 2e-3  # with 1000 points on each axis
    nodes, _ = chain_by_quadrature(unary, transitions[0])
    up = chain_by_quadrature(unary + step * direction, transitions[0])
    down = chain_by_quadrature(unary - step * direction, transitions[0])
    for found, expected in (
        (samples, nodes),
        (on_unary, (up[0] - down[0]) / (2 * step)),
        (on_transitions[:, 0], (up[1] - down[1]) / (2 * step)),
    ):
        error = SIX_SIGMA * found.std(0) / NUM_SAMPLES**0.5 + grid_error
        assert ((found.mean(0) - expected).abs() <= error).all()


def test_independent_positions_are_exact_and_do_not_mix() -> None:
    """Without transitions a chain is a product of independent softmax choices."""
    unary = torch.tensor([[0.0, 1.0], [0.5, 0.0]], dtype=torch.float64)
    direction = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    flat = torch.zeros(1, 2, 2, dtype=torch.float64)
    samples, (grads, _) = estimates(LinearChain, unary, flat, direction=direction, step=0.2)
    assert_mean(samples, unary.softmax(-1))
    assert not grads[:, 0].any()


def test_padding_does_not_set_the_scale() -> None:
    mask = torch.tensor([True, True, False])
    results = []
    for junk in (0.0, torch.nan):
        scores = torch.tensor([0.0, 1.0, junk], requires_grad=True)
        parts = perturb_and_map(Categorical(scores, mask), 50, generator=generator())
        loss = (parts.mean(0) * torch.tensor([1.0, 2.0, 1e9 if junk else 0.0])).sum()
        results.append(torch.autograd.grad(loss, scores)[0])
    assert torch.equal(*results)


def test_batches_seeds_and_dtypes() -> None:
    unary = torch.randn(2, 3, 2, generator=generator(), requires_grad=True)
    transitions = torch.zeros(2, 2, requires_grad=True)
    chain = LinearChain(unary, transitions)
    parts = perturb_and_map(chain, 4, generator=generator())
    assert parts.shape == (4, 2, 3, 2)
    assert parts.dtype == torch.float32
    assert torch.equal(parts, perturb_and_map(chain, 4, generator=generator()))
    grads = torch.autograd.grad((parts[..., 1] ** 2).sum(), (unary, transitions))
    assert [grad.shape for grad in grads] == [(2, 3, 2), (2, 2)]
    assert_close(grads[0].sum(-1), torch.zeros(2, 3))  # moves probability between states


def test_errors() -> None:
    scores = torch.zeros(3, requires_grad=True)
    parts = perturb_and_map(Categorical(scores), 2, generator=generator())
    (grad,) = torch.autograd.grad((parts**2).sum(), scores, create_graph=True)
    with pytest.raises(DerivativeError, match="request for a second"):
        torch.autograd.grad(grad.sum(), scores)
    with pytest.raises(ImpossibleError):
        perturb_and_map(Categorical(torch.full((3,), -torch.inf)), 2)
    with pytest.raises(ValueRangeError, match="num_samples=0"):
        perturb_and_map(Categorical(scores), 0)
