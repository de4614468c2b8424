"""The ops in torch: schemas, shapes of meta tensors, threads; and the tensors that they accept."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveal.distributions import LinearChain
from foveal.inference import _native

pytest.importorskip("foveal_native", reason="foveal-native is not installed")

OPS = torch.ops.foveal_native
CHECKS = ("test_schema", "test_faketensor")
SENTENCES = (3, 20)  # one by one, and side by side in the lanes


def chain_inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(5, 4, 3), torch.randn(5, 3, 3, 3), torch.rand(5, 4) > 0.3


@pytest.mark.parametrize("with_mask", [True, False])
def test_the_ops_of_the_chain_are_what_their_schemas_say(with_mask: bool) -> None:
    unary, transitions, mask = chain_inputs()
    given = (unary, transitions, mask if with_mask else None)
    uniforms = torch.rand(2, 5, 4, dtype=torch.float64)
    for op in (OPS.chain_log_partition, OPS.chain_marginals, OPS.chain_best):
        torch.library.opcheck(op, given, test_utils=CHECKS)
    torch.library.opcheck(OPS.chain_sample, (*given, uniforms), test_utils=CHECKS)
    _, nodes, pairs = OPS.chain_marginals(*given)
    for wanted in (True, False):
        saved = (nodes, pairs, given[-1], None, torch.randn_like(pairs), wanted)
        torch.library.opcheck(OPS.chain_tangent, saved, test_utils=CHECKS)


@pytest.mark.parametrize("with_mask", [True, False])
def test_the_ops_of_shared_transitions_are_what_their_schemas_say(with_mask: bool) -> None:
    torch.manual_seed(1)
    mask = torch.rand(5, 4) > 0.3 if with_mask else None
    given = (torch.randn(5, 4, 3), torch.randn(1, 1, 3, 3), mask)
    torch.library.opcheck(OPS.chain_nodes, given, test_utils=CHECKS)
    _, nodes, kept, safe = OPS.chain_nodes(*given)
    saved = (*given, kept, safe, torch.randn_like(nodes))
    torch.library.opcheck(OPS.chain_nodes_tangent, saved, test_utils=CHECKS)


@pytest.mark.parametrize("batch", SENTENCES)
@pytest.mark.parametrize("single_root", [True, False])
def test_the_ops_of_trees_are_what_their_schemas_say(single_root: bool, batch: int) -> None:
    torch.manual_seed(2)
    arcs, mask = torch.randn(batch, 20, 20), torch.rand(batch, 19) > 0.3
    for op in (OPS.projective_log_partition, OPS.projective_best):
        torch.library.opcheck(op, (arcs, mask, single_root), test_utils=CHECKS)
    for keep in (True, False):
        given = (arcs, mask, single_root, keep)
        torch.library.opcheck(OPS.projective_marginals, given, test_utils=CHECKS)
    uniforms = torch.rand(2, batch, 40, dtype=torch.float64)
    drawn = (arcs, mask, uniforms, single_root)
    torch.library.opcheck(OPS.projective_sample, drawn, test_utils=CHECKS)
    _, found, kept = OPS.projective_marginals(arcs, mask, single_root, True)
    saved = (found, kept, mask, torch.randn_like(arcs), single_root)
    torch.library.opcheck(OPS.projective_tangent, saved, test_utils=CHECKS)


@pytest.mark.parametrize("batch", SENTENCES)
def test_the_ops_of_bracketings_are_what_their_schemas_say(batch: int) -> None:
    torch.manual_seed(3)
    spans, mask = torch.randn(batch, 20, 20), torch.rand(batch, 20) > 0.3
    for op in (OPS.span_log_partition, OPS.span_best):
        torch.library.opcheck(op, (spans, mask), test_utils=CHECKS)
    for keep in (True, False):
        torch.library.opcheck(OPS.span_marginals, (spans, mask, keep), test_utils=CHECKS)
    uniforms = torch.rand(2, batch, 20, dtype=torch.float64)
    torch.library.opcheck(OPS.span_sample, (spans, mask, uniforms), test_utils=CHECKS)
    kept = OPS.span_marginals(spans, mask, True)[2]
    torch.library.opcheck(
        OPS.span_tangent, (kept, mask, torch.randn_like(spans)), test_utils=CHECKS
    )


def test_probability_space_gives_way_where_it_would_lose_a_chain() -> None:
    """Two chains of states never meet; one is far ahead for the first half, then the other."""
    states, length = 12, 60
    unary = torch.zeros(2, length, states)
    unary[0, : length // 2, ::2], unary[0, length // 2 :, 1::2] = 50.0, 50.0
    apart = torch.arange(states).unsqueeze(-1) % 2 != torch.arange(states) % 2
    links = torch.zeros(states, states).masked_fill(apart, -torch.inf).requires_grad_()
    safe = OPS.chain_nodes(unary, links.detach()[None, None], None)[3]
    assert safe.tolist() == [False, True]
    marginals = LinearChain(unary, links).marginals()
    torch.testing.assert_close(marginals, torch.full_like(marginals, 1 / states))
    weights = torch.randn(marginals.shape, generator=torch.Generator().manual_seed(0))
    (found,) = torch.autograd.grad((marginals * weights).sum(), links)
    wide = LinearChain(unary.double(), links.double())
    (expected,) = torch.autograd.grad((wide.pair_marginals().sum(-2) * weights[:, 1:]).sum(), links)
    first = torch.autograd.grad((wide.pair_marginals()[:, 0].sum(-1) * weights[:, 0]).sum(), links)
    torch.testing.assert_close(found, expected + first[0], rtol=1e-4, atol=1e-4)


def test_kernels_take_what_they_serve() -> None:
    assert _native.serves(torch.zeros(1), torch.zeros(1))
    assert _native.serves(torch.zeros(1).bfloat16())
    assert not _native.serves(torch.zeros(1), torch.zeros(1).double())
    assert not _native.serves(torch.zeros(1, device="meta"))


@pytest.mark.parametrize("operation", [LinearChain.log_partition, LinearChain.marginals])
def test_threads_change_nothing(operation: Callable[[LinearChain], Tensor]) -> None:
    torch.manual_seed(1)
    chain = LinearChain(torch.randn(70, 9, 3), torch.randn(70, 8, 3, 3))
    alone = operation(chain)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(operation(chain), alone)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("words", [9, 60])  # side by side in the lanes, and one by one
def test_sentences_of_a_batch_do_not_see_each_other(words: int) -> None:
    """Neither the threads nor the sentences in the other lanes change the result of a sentence."""
    torch.manual_seed(2)
    arcs, mask = torch.randn(40, words + 1, words + 1), torch.rand(40, words) > 0.2
    found = OPS.projective_marginals(arcs, mask, True, False)[1]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert torch.equal(OPS.projective_marginals(arcs, mask, True, False)[1], found)
    finally:
        torch.set_num_threads(before)
    backwards = OPS.projective_marginals(arcs.flip(0), mask.flip(0), True, False)[1].flip(0)
    torch.testing.assert_close(backwards, found, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("with_mask", [True, False])
@pytest.mark.parametrize("batch", [16, 19, 32, 50])
def test_chains_of_two_states_do_not_see_the_groups_of_their_batch(
    batch: int, with_mask: bool
) -> None:
    torch.manual_seed(7)
    unary, pairs = torch.randn(batch, 6, 2), torch.randn(batch, 5, 2, 2)
    pairs[torch.rand_like(pairs) < 0.2] = -torch.inf
    mask = torch.rand(batch, 6) > 0.3 if with_mask else None
    on_nodes, on_pairs = torch.randn_like(unary), torch.randn(batch, 5, 2, 2)

    def computed(items: slice) -> tuple[Tensor, ...]:
        own = None if mask is None else mask[items]
        found = OPS.chain_marginals(unary[items], pairs[items], own)
        along = OPS.chain_tangent(*found[1:], own, on_nodes[items], on_pairs[items], True)
        return *found, *along

    alone = [computed(slice(item, item + 1)) for item in range(batch)]
    for together, parts in zip(computed(slice(None)), zip(*alone, strict=True), strict=True):
        assert torch.equal(together, torch.cat(parts))


def test_an_exported_program_runs_the_kernels() -> None:
    class Step(torch.nn.Module):
        def forward(self, unary: Tensor) -> Tensor:
            return LinearChain(unary, torch.zeros(2, 2)).marginals()

    unary = torch.randn(3, 4, 2)
    program = torch.export.export(Step(), (unary,))
    assert any("foveal_native" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(unary), Step()(unary))
