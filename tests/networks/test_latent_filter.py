"""The filter of monotonic walks matches the enumeration of all walks, and a linear chain of the
library.
"""

from itertools import pairwise, product

import pytest
import torch
from torch import Tensor

from foveal.distributions import LinearChain
from foveal.errors import DerivativeError
from foveal.networks.decoders.latent._filter import forward_filter, forward_step, transitions
from foveal.networks.decoders.latent._transitions import IndependentPositions, MonotonicTransitions

NEVER = -torch.inf


def case(
    batch: int = 2, length: int = 4, places: int = 3, *, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw scores, emissions and an uncertain start position, in float64."""
    generator = torch.Generator().manual_seed(seed)
    shape = batch, length, places
    scores, emissions = (
        2 * torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    before = torch.randn(batch, places, generator=generator, dtype=torch.float64).log_softmax(-1)
    return scores, emissions, before


def every_walk(scores: Tensor, emissions: Tensor, before: Tensor) -> Tensor:
    """Enumerate log p(a_0, a, y) for every walk a_0 <= a_1 <= .. of one item."""
    length, places = scores.shape
    found = []
    for walk in product(range(places), repeat=length + 1):
        if any(j < i for i, j in pairwise(walk)):
            continue
        total = before[walk[0]]
        for t in range(length):
            i, j = walk[t], walk[t + 1]
            total = total + scores[t, j] - scores[t, i:].logsumexp(-1) + emissions[t, j]
        found.append(total)
    return torch.stack(found)


def test_log_probabilities_are_those_of_all_walks_and_so_are_their_gradients() -> None:
    scores, emissions, before = (part.requires_grad_() for part in case())
    parts = (scores, emissions, before)
    walked = forward_filter(*parts)
    total = walked.log_prob.sum(-1)
    expected = torch.stack(
        [every_walk(*(p[b] for p in parts)).logsumexp(-1) for b in range(len(scores))]
    )
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        torch.autograd.grad(total.sum(), parts),
        torch.autograd.grad(expected.sum(), parts),
        rtol=1e-10,
        atol=1e-12,
    )
    for length in range(1, 4):  # each step: p(y_t | y_<t) is a ratio of two sums
        cut = [every_walk(scores[0, :n], emissions[0, :n], before[0]) for n in (length, length + 1)]
        step = cut[1].logsumexp(-1) - cut[0].logsumexp(-1)
        torch.testing.assert_close(walked.log_prob[0, length], step)


@pytest.mark.parametrize("masked", [False, True])
def test_every_gradient_is_that_of_finite_differences(masked: bool) -> None:
    parts = tuple(part.requires_grad_() for part in case(3, 4, 3, seed=1))
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]]).bool() if masked else None

    def run(scores: Tensor, emissions: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        predicted, log_prob, after = forward_filter(scores, emissions, before, mask)
        if mask is not None:  # predictions at padded steps are undefined
            predicted = torch.where(mask.unsqueeze(-1), predicted, 0.0)
        return predicted, log_prob, after

    torch.autograd.gradcheck(run, parts)


def test_predictions_are_distributions_and_those_of_single_steps() -> None:
    scores, emissions, before = case(seed=2)
    walked = forward_filter(scores, emissions, before)
    torch.testing.assert_close(
        walked.predicted.exp().sum(-1), torch.ones(2, 4, dtype=torch.float64)
    )
    for t in range(4):
        predicted = forward_step(before, scores[:, t])
        torch.testing.assert_close(predicted, walked.predicted[:, t])
        by_matrix = (before.unsqueeze(-1) + transitions(scores[:, t])).logsumexp(-2)
        torch.testing.assert_close(predicted, by_matrix)
        before = (predicted + emissions[:, t]).log_softmax(-1)
    torch.testing.assert_close(before, walked.after)


def test_a_padded_step_is_as_if_it_were_not_there() -> None:
    scores, emissions, before = case(1, 5, 3, seed=3)
    mask = torch.tensor([[False, True, False, True, True]])
    whole = forward_filter(scores, emissions, before, mask)
    real = mask[0]
    cut = forward_filter(scores[:, real], emissions[:, real], before)
    assert torch.equal(whole.predicted[:, real], cut.predicted)
    assert torch.equal(whole.log_prob[:, real], cut.log_prob)
    assert torch.equal(whole.after, cut.after)
    assert not whole.log_prob[:, ~real].any()


def test_a_shut_place_is_as_if_it_were_not_there_and_has_no_gradient() -> None:
    scores, emissions, before = case(2, 4, 5, seed=4)
    open_places = torch.tensor([False, True, False, True, False])
    shut = scores.masked_fill(~open_places, NEVER).requires_grad_()
    start = MonotonicTransitions().start(before)
    whole = forward_filter(shut, emissions, start)
    first = torch.tensor([[0.0, NEVER]] * 2, dtype=torch.float64)
    cut = forward_filter(scores[..., open_places], emissions[..., open_places], first)
    torch.testing.assert_close(whole.log_prob, cut.log_prob)
    torch.testing.assert_close(whole.predicted[..., open_places], cut.predicted)
    assert (whole.predicted[..., ~open_places] == NEVER).all()
    (gradient,) = torch.autograd.grad(whole.log_prob.sum(), shut)
    assert gradient.isfinite().all()
    assert not gradient[..., ~open_places].any()


def test_what_cannot_be_written_has_probability_0_and_gradient_0() -> None:
    """At the second step, no position is allowed from the last position on."""
    scores = torch.tensor([[[NEVER, 0.0], [0.0, NEVER]]], requires_grad=True)
    emissions = torch.zeros(1, 2, 2, requires_grad=True)
    walked = forward_filter(scores, emissions, torch.tensor([[0.0, NEVER]]))
    assert walked.log_prob.tolist() == [[0.0, NEVER]]
    gradients = torch.autograd.grad(walked.log_prob.sum(), (scores, emissions))
    assert all(each.isfinite().all() for each in gradients)


def test_improbable_walks_do_not_underflow() -> None:
    """Log-probabilities stay finite where the ratio of two steps is below the smallest float32."""
    emissions = torch.zeros(1, 2, 2)
    emissions[0, :, 0] = -300.0  # the first position almost never emits it,
    scores = torch.tensor([[[300.0, 0.0], [300.0, 0.0]]])  # but the walk prefers to be there
    start = torch.tensor([[0.0, NEVER]])
    narrow = forward_filter(scores, emissions, start).log_prob
    wide = forward_filter(scores.double(), emissions.double(), start.double()).log_prob
    assert narrow.isfinite().all()
    torch.testing.assert_close(narrow.double(), wide, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("mask", [None, torch.tensor([[1, 1, 1, 1], [0, 1, 0, 1]]).bool()])
def test_the_posterior_is_a_chain_whose_sum_is_the_likelihood(mask: Tensor | None) -> None:
    walk = MonotonicTransitions()
    scores, emissions, before = case(seed=5)
    walked = walk.run(scores, emissions, before, mask)
    chain = walk.posterior(scores, emissions, walked.predicted, mask)
    assert isinstance(chain, LinearChain)
    torch.testing.assert_close(chain.log_partition(), walked.log_prob.sum(-1))
    # The last step has seen all outputs: there the filter is the posterior.
    torch.testing.assert_close(chain.marginals()[:, -1], walked.after.exp())


def test_a_free_walk_knows_nothing_of_the_step_before() -> None:
    walk = IndependentPositions()
    scores, emissions, before = case(seed=6)
    walked = walk.run(scores, emissions, before, None)
    prior, said = scores.softmax(-1), emissions.exp()
    torch.testing.assert_close(walked.log_prob, (prior * said).sum(-1).log())
    expected = prior * said / (prior * said).sum(-1, keepdim=True)
    found = walk.posterior(scores, emissions, walked.predicted, None).marginals()
    torch.testing.assert_close(found, expected)


def test_a_second_derivative_is_refused_in_words() -> None:
    scores, emissions, before = case()
    total = forward_filter(scores.requires_grad_(), emissions, before).log_prob.sum()
    with pytest.raises(DerivativeError, match="create_graph"):
        torch.autograd.grad(total, scores, create_graph=True)
