"""Straight-through: values 0 and 1 in the forward pass, the Jacobian of the marginals backward."""

import torch
from torch.testing import assert_close

from foveal.distributions import LinearChain, SparseChain, Subset
from foveal.estimators import straight_through


def test_forward_is_the_structure_and_backward_the_marginals() -> None:
    generator = torch.Generator().manual_seed(0)
    unary = torch.randn(2, 4, 3, generator=generator, requires_grad=True)
    transitions = torch.randn(3, 3, generator=generator, requires_grad=True)
    weights = torch.randn(5, 2, 4, 3, generator=generator)
    for chain in (LinearChain(unary, transitions), SparseChain(unary, transitions)):
        samples = chain.sample((5,), generator=generator)
        hard = straight_through(chain, samples)
        assert torch.equal(hard, chain.indicators(samples))
        found = torch.autograd.grad((hard * weights).sum(), (unary, transitions))
        soft = (chain.marginals() * weights).sum()
        for one, other in zip(found, torch.autograd.grad(soft, (unary, transitions)), strict=True):
            assert_close(one, other)


def test_the_best_structure() -> None:
    scores = torch.tensor([[2.0, -1.0, 0.5]], requires_grad=True)
    chosen = Subset(scores)
    hard = straight_through(chosen, chosen.argmax())
    assert hard.tolist() == [[1, 0, 1]]
    (grad,) = torch.autograd.grad(hard.sum(), scores)
    p = scores.detach().sigmoid()
    assert_close(grad, p * (1 - p))
