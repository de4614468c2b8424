"""Spanning trees with the kernels: ops, range, samples, export, threads."""

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from foveal.distributions import SpanningTree
from foveal.inference import _native

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
CHECKS = ("test_schema", "test_faketensor")


@pytest.mark.parametrize("single_root", [True, False])
def test_the_ops_are_what_their_schemas_say(single_root: bool) -> None:
    torch.manual_seed(0)
    arcs, mask = torch.randn(3, 20, 20), torch.rand(3, 19) > 0.3
    for op in (OPS.spanning_log_partition, OPS.spanning_marginals, OPS.spanning_best):
        torch.library.opcheck(op, (arcs, mask, single_root), test_utils=CHECKS)
    seeds = torch.randint(2**62, (2, 3))
    torch.library.opcheck(OPS.spanning_sample, (arcs, mask, seeds, single_root), test_utils=CHECKS)
    _, _, kept, safe = OPS.spanning_marginals(arcs, mask, single_root)
    saved = (arcs, mask, kept, safe, torch.randn_like(arcs), single_root)
    torch.library.opcheck(OPS.spanning_tangent, saved, test_utils=CHECKS)


def answers(arcs: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Return marginals, and the gradient of a random sum of them, in float64."""
    leaf = arcs.detach().requires_grad_()
    marginals = SpanningTree(leaf, single_root=single_root).marginals()
    weights = torch.randn(arcs.shape, generator=torch.Generator().manual_seed(0))
    (grad,) = torch.autograd.grad((marginals * weights.to(arcs.dtype)).sum(), leaf)
    return marginals.detach().double(), grad.double()


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("words", [20, 80])
def test_the_range_of_doubles_holds_scores_of_fifty_either_way(
    single_root: bool, words: int
) -> None:
    torch.manual_seed(1)
    arcs = torch.empty(4, words + 1, words + 1).uniform_(-50, 50)
    assert OPS.spanning_marginals(arcs, None, single_root)[3].all()
    for found, wide in zip(
        answers(arcs, single_root), answers(arcs.double(), single_root), strict=True
    ):
        assert (found - wide).abs().max() < 1e-6


@pytest.mark.parametrize("single_root", [True, False])
def test_what_leaves_the_range_is_the_same_in_any_order_of_words(single_root: bool) -> None:
    """Words are eliminated in their order, so another order is an independent computation."""
    torch.manual_seed(2)
    arcs = torch.randn(4, 21, 21, dtype=torch.float64) * 400
    assert not OPS.spanning_marginals(arcs, None, single_root)[3].any()
    order = torch.cat([torch.zeros(1, dtype=torch.long), torch.randperm(20) + 1])
    found = SpanningTree(arcs, single_root=single_root)
    moved = SpanningTree(arcs[:, order][:, :, order], single_root=single_root)
    torch.testing.assert_close(found.log_partition(), moved.log_partition(), rtol=1e-13, atol=0)
    torch.testing.assert_close(
        found.marginals()[:, order][:, :, order], moved.marginals(), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("single_root", [True, False])
def test_where_arcs_are_forbidden_the_range_is_watched(
    single_root: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each arc is in range, but a path around a forbidden arc may not be."""
    generator = torch.Generator().manual_seed(3)
    arcs = torch.randn(200, 9, 9, generator=generator, dtype=torch.float64)
    arcs -= 300 * (torch.rand(arcs.shape, generator=generator) < 0.5).double()
    arcs = torch.where(torch.rand(arcs.shape, generator=generator) < 0.6, -torch.inf, arcs)
    safe = OPS.spanning_marginals(arcs, None, single_root)[3]
    assert safe.any()
    assert not safe.all()
    found = answers(arcs, single_root)
    monkeypatch.setattr(_native, "_IN_USE", False)
    for one, expected in zip(found, answers(arcs, single_root), strict=True):
        torch.testing.assert_close(one, expected, rtol=0, atol=1e-9)


def trees(num_words: int, single_root: bool) -> Iterator[tuple[int, ...]]:
    for heads in product(range(num_words + 1), repeat=num_words):
        ends = list(range(1, num_words + 1))
        for _ in heads:
            ends = [0 if end == 0 else heads[end - 1] for end in ends]
        if not any(ends) and (not single_root or heads.count(0) == 1):
            yield heads


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("cycle", [0.0, 6.0, 60.0])
def test_samples_have_their_frequencies(single_root: bool, cycle: float) -> None:
    """Samples come from walks, from marginals if walks are long, and from both by turns: a cycle of
    odds e^6 takes about the maximum number of steps.
    """
    generator = torch.Generator().manual_seed(3)
    arcs = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    arcs[1, 2] += cycle
    arcs[2, 1] += cycle
    tree = SpanningTree(arcs, single_root=single_root)
    count = 20_000
    torch.manual_seed(4)
    drawn = tree.sample((count,))
    values = torch.tensor(list(trees(3, single_root)))
    frequencies = (drawn[:, None] == values).all(-1).double().mean(0)
    expected = tree.log_prob(values).exp()
    assert frequencies.sum() == pytest.approx(1)
    deviation = (expected * (1 - expected) / count).sqrt()
    assert ((frequencies - expected).abs() < 5 * deviation + 1e-9).all()


def test_an_exported_program_runs_the_kernels() -> None:
    class Step(torch.nn.Module):
        def forward(self, arcs: Tensor) -> Tensor:
            return SpanningTree(arcs).marginals()

    arcs = torch.randn(3, 4, 4)
    program = torch.export.export(Step(), (arcs,))
    assert any("spanning_marginals" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(arcs), Step()(arcs))


def test_threads_change_nothing() -> None:
    torch.manual_seed(5)
    arcs = torch.randn(20, 13, 13)
    alone = answers(arcs, True)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        both = answers(arcs, True)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(alone, both, strict=True))


@pytest.mark.parametrize("single_root", [True, False])
def test_a_score_of_infinity_draws_no_tree_and_does_not_crash(single_root: bool) -> None:
    arcs, seeds = torch.zeros(1, 5, 5), torch.arange(20).unsqueeze(-1)
    arcs[0, 1, 2] = torch.inf
    heads, possible = OPS.spanning_sample(arcs, None, seeds, single_root)
    assert not possible.any()
    assert heads.min() >= 0
    assert heads.max() <= 4
