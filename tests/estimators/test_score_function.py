"""The score function estimator is unbiased: exactly, as a sum over all pairs of samples."""

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import Categorical, LinearChain, SparseChain
from foveal.errors import ShapeError
from foveal.estimators import score_function

pytestmark = pytest.mark.slow


def leaves() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    unary = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    transitions = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    return unary.requires_grad_(), transitions.requires_grad_()


LABELLINGS = torch.tensor(list(product(range(2), repeat=3)))
REWARDS = torch.randn(8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("structure", [LinearChain, SparseChain])
@pytest.mark.parametrize("num_samples", [1, 2, 3])
def test_unbiased_by_enumeration(structure: type, num_samples: int) -> None:
    """The mean of the estimated gradient over all tuples of samples is the gradient of E[reward]."""
    scores = leaves()
    chain = structure(*scores)
    probabilities = chain.log_prob(LABELLINGS).exp()
    true = torch.autograd.grad((probabilities * REWARDS).sum(), scores, retain_graph=True)
    possible = [i for i in range(8) if probabilities[i] > 0]
    found = [torch.zeros_like(part) for part in scores]
    value = torch.zeros((), dtype=torch.float64)
    for places in product(possible, repeat=num_samples):
        drawn = torch.tensor(places)
        weight = probabilities.detach()[drawn].prod()
        surrogate = score_function(chain, LABELLINGS[drawn], REWARDS[drawn])
        value = value + weight * surrogate.detach()
        grads = torch.autograd.grad(surrogate, scores, retain_graph=True)
        found = [total + weight * grad for total, grad in zip(found, grads, strict=True)]
    assert_close(value, (probabilities * REWARDS).sum().detach(), rtol=1e-10, atol=1e-10)
    for one, other in zip(found, true, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_the_baseline_lowers_the_variance() -> None:
    """The reward is far from 0; with the other samples as baseline, this offset does not matter."""
    scores = torch.zeros(4, requires_grad=True)
    choice = Categorical(scores)
    generator = torch.Generator().manual_seed(0)

    def spread(num_samples: int, repeats: int) -> float:
        grads = []
        for _ in range(repeats):
            samples = choice.sample((num_samples,), generator=generator)
            surrogate = score_function(choice, samples, 100.0 + samples.float())
            grads.append(torch.autograd.grad(surrogate, scores, retain_graph=True)[0])
        return torch.stack(grads).var(0).sum().item()

    assert spread(4, 200) < 1e-2 * spread(1, 200)


def test_a_reward_with_parameters_gets_its_own_gradient() -> None:
    scores, weights = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    samples = torch.tensor([0, 0, 2])
    surrogate = score_function(Categorical(scores), samples, weights[samples])
    (grad,) = torch.autograd.grad(surrogate, weights)
    assert_close(grad, torch.tensor([2 / 3, 0.0, 1 / 3]))


def test_each_batch_item_has_its_own_baseline() -> None:
    scores = torch.zeros(2, 3, requires_grad=True)
    samples = torch.tensor([[0, 1], [2, 1]])
    rewards = torch.tensor([[1.0, 5.0], [0.0, 5.0]])
    surrogate = score_function(Categorical(scores), samples, rewards)
    assert surrogate.tolist() == [0.5, 5.0]
    (grad,) = torch.autograd.grad(surrogate.sum(), scores)
    assert_close(grad, torch.tensor([[0.5, 0.0, -0.5], [0.0, 0.0, 0.0]]))


def test_the_sample_axis_is_needed() -> None:
    choice = Categorical(torch.zeros(4, 3))
    with pytest.raises(ShapeError, match="one leading axis S"):
        score_function(choice, choice.sample(), torch.zeros(4))
    with pytest.raises(ShapeError, match="one leading axis S"):
        score_function(choice, choice.sample((2,)), torch.zeros(2, 1))
