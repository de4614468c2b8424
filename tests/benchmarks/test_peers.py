"""The adapters of other libraries compute the same quantities: equal numbers on small inputs."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks import peers
from benchmarks.cases import US, Family
from benchmarks.families import FAMILIES
from benchmarks.peers import (
    PytorchCrfChain,
    TorchStructChain,
    TorchStructSegments,
    segments_as_edges,
)
from foveal.distributions import LinearChain, SemiMarkov

BATCH, LENGTH, STATES = 3, 6, 4
TOLERANCE = 1e-9  # everything is in float64


@pytest.fixture
def edges() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    shape = (BATCH, LENGTH - 1, STATES, STATES)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def unary() -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(BATCH, LENGTH, STATES, generator=generator, dtype=torch.float64)


@pytest.fixture
def transitions() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(STATES, STATES, generator=generator, dtype=torch.float64)


def chain_of(edges: Tensor) -> LinearChain:
    return LinearChain(edges.new_zeros(BATCH, LENGTH, STATES), edges)


def pairs_of(labels: Tensor) -> Tensor:
    hot = one_hot(labels, STATES)
    return hot[..., :-1, :, None] * hot[..., 1:, None, :]


def close(ours: Tensor, theirs: Tensor) -> bool:
    return ours.shape == theirs.shape and bool((ours - theirs).abs().max() < TOLERANCE)


def test_torch_struct_agrees_on_sums_and_marginals(edges: Tensor) -> None:
    ours, theirs = chain_of(edges), TorchStructChain(edges.clone())
    assert close(ours.log_partition(), theirs.log_partition())
    assert close(ours.pair_marginals(), theirs.pair_marginals())


def test_torch_struct_agrees_on_the_gradient_through_marginals(edges: Tensor) -> None:
    weights = torch.randn_like(edges)
    gradients = []
    for marginals in (
        lambda leaf: chain_of(leaf).pair_marginals(),
        lambda leaf: TorchStructChain(leaf).pair_marginals(),
    ):
        leaf = edges.clone().requires_grad_()
        gradients.append(torch.autograd.grad((marginals(leaf) * weights).sum(), leaf)[0])
    assert close(*gradients)


def test_torch_struct_agrees_on_the_best_labels(edges: Tensor) -> None:
    theirs = TorchStructChain(edges.clone()).argmax()
    assert torch.equal(pairs_of(chain_of(edges).argmax()).to(theirs.dtype), theirs)


def test_torch_struct_draws_what_it_is_asked_for(edges: Tensor) -> None:
    draws = TorchStructChain(edges.clone()).sample(10)
    assert draws.shape == (10, *edges.shape)
    assert torch.equal(draws.sum((-1, -2)), torch.ones(10, BATCH, LENGTH - 1, dtype=draws.dtype))


def test_pytorch_crf_agrees_on_sums_and_marginals(unary: Tensor, transitions: Tensor) -> None:
    ours, theirs = LinearChain(unary, transitions), PytorchCrfChain(transitions)
    assert close(ours.log_partition(), theirs.log_partition(unary))
    assert close(ours.marginals(), theirs.marginals(unary.clone().requires_grad_()))


def test_pytorch_crf_agrees_on_the_gradient_through_marginals(
    unary: Tensor, transitions: Tensor
) -> None:
    weights = torch.randn_like(unary)
    scores, links = unary.clone().requires_grad_(), transitions.clone().requires_grad_()
    loss = (LinearChain(scores, links).marginals() * weights).sum()
    ours = torch.autograd.grad(loss, (scores, links))
    crf, scores = PytorchCrfChain(transitions), unary.clone().requires_grad_()
    loss = (crf.marginals(scores) * weights).sum()
    theirs = torch.autograd.grad(loss, (scores, crf.transitions))
    assert close(ours[0], theirs[0])
    assert close(ours[1], theirs[1])


def test_pytorch_crf_agrees_on_the_best_labels(unary: Tensor, transitions: Tensor) -> None:
    theirs = PytorchCrfChain(transitions).argmax(unary)
    assert LinearChain(unary, transitions).argmax().tolist() == theirs


@pytest.fixture
def segments() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    shapes = ((BATCH, LENGTH, 3, STATES), (BATCH, LENGTH - 1, STATES, STATES))
    first, second = (torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)
    return first, second


def test_torch_struct_agrees_on_segments(segments: tuple[Tensor, Tensor]) -> None:
    ours = SemiMarkov(*segments)
    theirs = TorchStructSegments(segments_as_edges(*segments))
    assert close(ours.log_partition(), theirs.log_partition())
    # torch-struct's marginals are over a segment and the next label, and include length 0.
    assert close(ours.marginals(), theirs.marginals().sum(-2)[:, :, 1:])
    best = ours.indicators(ours.argmax())
    assert torch.equal(best, theirs.argmax().sum(-2)[:, :, 1:].to(best.dtype))


def test_torch_struct_agrees_on_the_gradient_through_segments(
    segments: tuple[Tensor, Tensor],
) -> None:
    weights = torch.randn_like(segments[0])
    leaves = [potential.clone().requires_grad_() for potential in segments]
    ours = torch.autograd.grad((SemiMarkov(*leaves).marginals() * weights).sum(), leaves)
    theirs_of = TorchStructSegments(segments_as_edges(*leaves)).marginals()
    weights_of = segments_as_edges(weights, torch.zeros_like(segments[1]), forbidden=0.0)
    theirs = torch.autograd.grad((theirs_of * weights_of).sum(), leaves)
    assert close(ours[0], theirs[0])
    assert close(ours[1], theirs[1])


def test_a_missing_peer_says_what_to_install() -> None:
    with pytest.raises(peers.PeerMissingError, match=r"needs no-such-peer.*--group peers"):
        peers.load_peer("no_such_peer", "no-such-peer")


def test_what_does_not_fit_is_known_beforehand() -> None:
    assert peers.torch_struct_fits("sample x10", (32, 25, 2))
    assert not peers.torch_struct_fits("sample x10", (1024, 1000, 100))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_call_of_a_family_runs(family: Family) -> None:
    case = family.build((2, 5, 3, 2)[: len(family.sizes[0])])
    assert case.left_out == ()
    for candidates in case.operations.values():
        assert US in candidates
        for call in candidates.values():
            assert call() is not None
