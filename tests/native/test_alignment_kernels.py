"""Monotone alignments with the kernels: opcheck, the range of scores, and samples."""

import pytest
import torch
from torch import Tensor

from foveal.distributions import Alignment
from foveal.inference import _native

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
CHECKS = ("test_schema", "test_faketensor")
FAR = 1e9  # a common substitute for infinity


@pytest.mark.parametrize("with_mask", [True, False])
def test_the_ops_are_what_their_schemas_say(with_mask: bool) -> None:
    torch.manual_seed(0)
    moves, mask = torch.randn(3, 20, 7, 3), torch.rand(3, 25) > 0.3 if with_mask else None
    for op in (OPS.alignment_log_partition, OPS.alignment_marginals, OPS.alignment_best):
        torch.library.opcheck(op, (moves, mask), test_utils=CHECKS)
    uniforms = torch.rand(2, 3, 25, dtype=torch.float64)
    torch.library.opcheck(OPS.alignment_sample, (moves, mask, uniforms), test_utils=CHECKS)
    found = OPS.alignment_marginals(moves, mask)[1]
    saved = (found, mask, torch.randn_like(moves))
    torch.library.opcheck(OPS.alignment_tangent, saved, test_utils=CHECKS)


def reference(
    moves: Tensor, weights: Tensor, monkeypatch: pytest.MonkeyPatch
) -> tuple[Tensor, ...]:
    """Return log-partition, marginals and their gradient from PyTorch operations, in float64."""
    with monkeypatch.context() as patch:
        patch.setattr(_native, "_IN_USE", False)
        return answers(moves.double(), weights.double())


def answers(moves: Tensor, weights: Tensor) -> tuple[Tensor, ...]:
    leaf = moves.detach().requires_grad_()
    marginals = Alignment(leaf).marginals()
    (gradient,) = torch.autograd.grad((marginals * weights).sum(), leaf)
    return Alignment(moves).log_partition(), marginals.detach(), gradient


@pytest.mark.parametrize(
    "kind", ["uniform", "even", "far", "forbidden", "one far move on every path"]
)
def test_no_range_of_scores_costs_accuracy(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums over paths store their exponents separately, so none overflows or underflows."""
    generator = torch.Generator().manual_seed(0)
    moves = (torch.rand(2, 150, 40, 3, generator=generator) * 2 - 1) * 50
    if kind == "even":
        moves = torch.zeros_like(moves)  # the sums grow fastest here
    if kind == "far":
        moves = moves - 5000
    if kind == "forbidden":
        moves = torch.where(torch.rand(moves.shape, generator=generator) < 0.2, -torch.inf, moves)
    if kind == "one far move on every path":
        moves[:, 70, :, :2] = -FAR  # the moves that enter a row
    weights = torch.randn(moves.shape, generator=generator)
    found, expected = answers(moves, weights), reference(moves, weights, monkeypatch)
    torch.testing.assert_close(found[0].double(), expected[0], rtol=1e-6, atol=1e-4)
    torch.testing.assert_close(found[1].double(), expected[1], rtol=0, atol=1e-5)
    torch.testing.assert_close(found[2].double(), expected[2], rtol=0, atol=3e-5)


def test_nothing_is_lost_to_subnormal_numbers_elsewhere() -> None:
    """The kernels flush subnormal numbers to 0 while they run, then restore the processor state."""
    tiny = torch.tensor(1e-40)
    assert OPS.alignment_marginals(torch.randn(1, 30, 30, 3), None)[1].isfinite().all()
    assert (tiny * 0.5).item() > 0


def test_draws_have_the_marginals_as_their_mean() -> None:
    torch.manual_seed(0)
    moves = torch.randn(2, 19, 6, 3)
    moves[0, 4:9, 2] = -torch.inf
    mask = torch.ones(2, 18, dtype=torch.bool)
    mask[1, ::3] = False
    model = Alignment(moves, mask)
    drawn = model.sample((20_000,)).float().mean(0)
    # five standard deviations of a frequency, for some hundred frequencies
    torch.testing.assert_close(drawn, model.marginals(), rtol=0, atol=5 * 0.5 / 20_000**0.5)


def test_an_item_without_a_path_gets_none() -> None:
    moves = torch.zeros(2, 20, 4, 3)
    moves[1, 10, :, :2] = -torch.inf
    log_partition, marginals = OPS.alignment_marginals(moves, None)
    assert log_partition.isfinite().tolist() == [True, False]
    assert not marginals[1].any()
    tangent = OPS.alignment_tangent(marginals, None, torch.randn_like(moves))
    assert not tangent[1].any()
    uniforms = torch.rand(1, 2, 22, dtype=torch.float64)
    assert OPS.alignment_sample(moves, None, uniforms)[1].tolist() == [True, False]
    assert OPS.alignment_best(moves, None)[1].isfinite().tolist() == [True, False]


def test_threads_change_nothing() -> None:
    torch.manual_seed(1)
    model = Alignment(torch.randn(9, 20, 12, 3))
    alone = model.marginals()
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(model.marginals(), alone)
    finally:
        torch.set_num_threads(before)


def test_an_exported_program_runs_the_kernels() -> None:
    class Step(torch.nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            return Alignment.one_to_many(scores).marginals()

    scores = torch.randn(3, 4, 5)
    program = torch.export.export(Step(), (scores,))
    assert any("foveal_native" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(scores), Step()(scores))
