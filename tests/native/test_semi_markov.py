"""The ops of semi-Markov models in torch, and guarantees of their kernels beyond the laws."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from foveal.distributions import SemiMarkov
from foveal.inference.semi_markov import _passes as passes

pytestmark = pytest.mark.slow

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
CHECKS = ("test_schema", "test_faketensor")
FEW, MANY = 3, 18  # labels: the lanes hold items, or labels


def random_model(labels: int, *, batch: int = 5, length: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    segments = torch.randn(batch, length, 3, labels)
    transitions = torch.randn(batch, length - 1, labels, labels)
    return segments, transitions, torch.rand(batch, length) > 0.3


@pytest.mark.parametrize("labels", [FEW, MANY])
@pytest.mark.parametrize("with_mask", [True, False])
def test_the_ops_are_what_their_schemas_say(labels: int, with_mask: bool) -> None:
    segments, transitions, mask = random_model(labels)
    given = (segments, transitions, mask if with_mask else None)
    for op in (OPS.semi_markov_log_partition, OPS.semi_markov_marginals, OPS.semi_markov_best):
        torch.library.opcheck(op, given, test_utils=CHECKS)
    uniforms = torch.rand(2, 5, 12, dtype=torch.float64)
    torch.library.opcheck(OPS.semi_markov_sample, (*given, uniforms), test_utils=CHECKS)
    _, found, pairs = OPS.semi_markov_marginals(*given)
    for wanted in (True, False):
        saved = (found, pairs, given[-1], None, torch.randn_like(pairs), wanted)
        torch.library.opcheck(OPS.semi_markov_tangent, saved, test_utils=CHECKS)


@pytest.mark.parametrize("labels", [FEW, MANY])
def test_padding_and_what_runs_past_the_end_change_nothing_to_the_bit(labels: int) -> None:
    segments, transitions, mask = random_model(labels, batch=18)
    mask[3] = False
    junk = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30]).repeat(segments.numel())
    ends = mask.sum(-1, keepdim=True) - mask.cumsum(-1) + 1  # positions from here to the end
    read = mask.unsqueeze(-1) & (torch.arange(3) < ends.unsqueeze(-1))
    linked = (mask & (mask.cumsum(-1) > 1))[:, 1:]
    other = torch.where(read.unsqueeze(-1), segments, junk[: segments.numel()].view_as(segments))
    bent = torch.where(linked[..., None, None], transitions, torch.nan)
    direction = torch.randn_like(segments)
    found = []
    for given in ((segments, transitions, direction), (other, bent, direction)):
        leaves = [part.clone().requires_grad_() for part in given[:2]]
        model = SemiMarkov(leaves[0], leaves[1], mask)
        marginals = model.marginals()
        weights = torch.where(read.unsqueeze(-1), direction, torch.nan if found else 0.0)
        grads = torch.autograd.grad(marginals, leaves, weights)
        found.append((model.log_partition(), marginals, *grads, model.argmax()))
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("labels", [FEW, MANY])
def test_samples_are_distributed_as_the_marginals_say(labels: int) -> None:
    segments, transitions, mask = random_model(labels)
    mask[0], mask[1] = True, False
    model = SemiMarkov(segments, transitions, mask)
    count = 20_000
    drawn = model.sample((count,), generator=torch.Generator().manual_seed(1))
    starts = (drawn.unsqueeze(-1) == torch.arange(labels)).double().mean(0)
    expected = model.marginals().sum(-2).double()
    error = (expected * (1 - expected) / count).sqrt()
    assert ((starts - expected).abs() <= 5 * error + 1e-6).all()
    assert bool((model.log_prob(drawn) > -torch.inf).all())


def test_an_impossible_item_has_no_probability_and_does_not_harm_the_others() -> None:
    segments, transitions, _ = random_model(FEW)
    segments[2, 4:] = -torch.inf
    segments[2, :, 2] = -torch.inf
    leaf = segments.requires_grad_()
    marginals = SemiMarkov(leaf, transitions).marginals()
    (grad,) = torch.autograd.grad((marginals * torch.randn_like(marginals)).sum(), leaf)
    assert not marginals[2].any()
    assert not grad[2].any()
    assert SemiMarkov(leaf, transitions).log_partition()[2] == -torch.inf
    assert_close(marginals[3], SemiMarkov(leaf[3], transitions[3]).marginals())
    uniforms = torch.rand(1, 5, 12, dtype=torch.float64)
    possible = OPS.semi_markov_sample(leaf, transitions, None, uniforms)[1]
    assert possible.tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("labels", [FEW, MANY])
@pytest.mark.parametrize("spread", ["wide", "mild"])
def test_a_thousand_positions_keep_the_bounds(labels: int, spread: str) -> None:
    torch.manual_seed(3)
    shape = (2, 1000, 4, labels)
    wide = spread == "wide"
    segments = torch.rand(shape) * 100 - 50 if wide else torch.randn(shape)
    transitions = torch.rand(labels, labels) * 100 - 50 if wide else torch.zeros(labels, labels)
    transitions[0, 1] = -torch.inf
    direction = torch.randn(shape) if wide else 10 + torch.rand(shape)  # not centered
    found = []
    for dtype in (torch.float32, torch.float64):
        leaf, links = segments.to(dtype).requires_grad_(), transitions.to(dtype)
        marginals = SemiMarkov(leaf, links).marginals()
        (grad,) = torch.autograd.grad((marginals * direction.to(dtype)).sum(), leaf)
        found.append((marginals.detach().double(), grad.double()))
    (narrow, along), (exact, exactly) = found
    assert (narrow - exact).abs().max() < 1e-5
    assert (along - exactly).abs().max() < 3e-5
    solved = passes.solve((segments.double(), transitions.double()[None, None]), None)
    (reference, _), _ = passes.marginals(solved.saved, None)
    assert_close(exact, reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("labels", [FEW, MANY])
def test_threads_change_nothing(labels: int) -> None:
    segments, transitions, mask = random_model(labels, batch=70)
    model = SemiMarkov(segments, transitions, mask)
    alone = model.marginals()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(model.marginals(), alone)
    finally:
        torch.set_num_threads(before)


def test_half_precision_is_raised() -> None:
    segments, transitions, mask = random_model(FEW)
    half = SemiMarkov(segments.bfloat16(), transitions.bfloat16(), mask)
    full = SemiMarkov(segments.bfloat16().float(), transitions.bfloat16().float(), mask)
    assert half.marginals().dtype == torch.float32
    assert torch.equal(half.marginals(), full.marginals())
    assert torch.equal(half.argmax(), full.argmax())


def test_an_exported_program_runs_the_kernels() -> None:
    class Step(torch.nn.Module):
        def forward(self, segments: Tensor) -> Tensor:
            return SemiMarkov(segments, torch.zeros(2, 2)).marginals()

    segments = torch.randn(3, 4, 2, 2)
    program = torch.export.export(Step(), (segments,))
    assert any("foveal_native" in str(node.target) for node in program.graph.nodes)
    assert_close(program.module()(segments), Step()(segments))
