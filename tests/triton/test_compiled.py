"""The Triton kernels as the compiler and torch see them; no kernel runs, and no GPU is needed."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from benchmarks.gpu.cases import (
    FAMILIES,
    Family,
    alignment_calls,
    chain_calls,
    ctc_calls,
    projective_calls,
    segment_calls,
    span_calls,
)
from benchmarks.gpu.compiling import compile_family, rows_of, variants
from benchmarks.gpu.recording import launches_of
from benchmarks.gpu.targets import TARGETS, Resources, compiled, resources
from benchmarks.results import Results
from foveal.inference._triton import serves
from foveal.inference.projective._native import serves_arcs
from foveal.inference.semi_markov._native import serves_segments
from foveal.inference.span._native import serves_spans

TABLE = Path("results/gpu_compile.json")
OPS = torch.ops.foveal_triton
# The kernels with the most registers: the largest inputs, with everything kept.
LARGEST = r"(chain|alignment|ctc|projective|span|segment) inside \(.*(padded 64|rows 512|lanes 512|splits 256)(?!.*float64)"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_largest_kernels_meet_their_limits(family: Family) -> None:
    rows = list(compile_family(family, LARGEST))
    assert len(rows) >= 3 * len(TARGETS)
    assert not [row.name for row in rows if row.misses]


def test_the_table_has_every_kernel() -> None:
    stored = [row.name for row in Results.load(TABLE).rows]
    current = [
        row.name
        for family in FAMILIES
        for kernel in variants(family, amd=False)
        for target in TARGETS
        for row in rows_of(kernel, target, Resources(0, 0, 0))
    ]
    assert stored == current, "run `python -m benchmarks.gpu compile`"


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize(
    ("calls", "size"),
    [(chain_calls, (1, 1, 1)), (chain_calls, (2, 3, 1)), (alignment_calls, (1, 1, 1)), (ctc_calls, (1, 1, 1)),
     (projective_calls, (1, 1)), (projective_calls, (1, 2)), (partial(projective_calls, single_root=False), (2, 80)),
     (span_calls, (1, 1)), (span_calls, (1, 2)), (segment_calls, (1, 1, 1, 1)), (segment_calls, (1, 2, 3, 1))],
    ids=str,
)  # fmt: skip
def test_the_smallest_inputs_compile(calls: Callable[..., Any], size: Any, target: str) -> None:
    gpu = TARGETS[target]
    launches = {
        (launch.name, launch.constants): launch
        for call in calls(size, "meta").values()
        for launch in launches_of(call, amd=gpu.is_amd)
    }
    assert launches
    for launch in launches.values():
        assert resources(compiled(launch, gpu), gpu).spilled == 0


@pytest.fixture
def fake() -> Iterator[Callable[..., Tensor]]:
    """Return a function that makes tensors that report a GPU and have no values."""
    with FakeTensorMode():
        yield partial(torch.empty, device="cuda")


def shapes_of(found: Any) -> list[tuple[int, ...]]:
    """Return the shapes of results, all on the GPU."""
    parts = [found] if isinstance(found, Tensor) else list(found)
    assert all(part.device.type == "cuda" for part in parts)
    return [tuple(part.shape) for part in parts]


def test_chain_ops_have_the_right_shapes_on_a_gpu(fake: Callable[..., Tensor]) -> None:
    unary, transitions = fake(32, 50, 20), fake(1, 1, 20, 20)
    mask, pairs = fake(32, 50, dtype=torch.bool), fake(32, 49, 20, 20)
    uniforms = fake(4, 32, 50, dtype=torch.float64)
    given = unary, transitions, mask
    assert shapes_of(OPS.chain_log_partition(*given)) == [(32,)]
    assert shapes_of(OPS.chain_marginals(*given)) == [(32,), (32, 50, 20), (32, 49, 20, 20)]
    assert shapes_of(OPS.chain_best(*given)) == [(32, 50), (32,)]
    assert shapes_of(OPS.chain_sample(*given, uniforms)) == [(4, 32, 50), (32,)]
    along = OPS.chain_tangent(unary, pairs, mask, unary, None, True)
    assert shapes_of(along) == [(32, 50, 20), (32, 49, 20, 20)]
    assert OPS.chain_best(*given)[0].dtype == torch.int64
    assert serves(unary, transitions)


def test_alignment_and_ctc_ops_have_the_right_shapes_on_a_gpu(fake: Callable[..., Tensor]) -> None:
    moves, mask = fake(8, 11, 16, 3), fake(8, 25, dtype=torch.bool)
    uniforms = fake(4, 8, 25, dtype=torch.float64)
    assert shapes_of(OPS.alignment_log_partition(moves, mask)) == [(8,)]
    assert shapes_of(OPS.alignment_marginals(moves, mask)) == [(8,), (8, 11, 16, 3)]
    assert shapes_of(OPS.alignment_tangent(moves, mask, moves)) == [(8, 11, 16, 3)]
    assert shapes_of(OPS.alignment_best(moves, mask)) == [(8, 11, 16, 3), (8,)]
    paths, possible = OPS.alignment_sample(moves, mask, uniforms)
    assert shapes_of((paths, possible)) == [(4, 8, 11, 16, 3), (8,)]
    assert paths.dtype == possible.dtype == torch.bool
    log_probs, targets = fake(8, 30, 12), fake(8, 5, dtype=torch.long)
    masks = fake(8, 30, dtype=torch.bool), fake(8, 5, dtype=torch.bool)
    assert shapes_of(OPS.ctc_log_partition(log_probs, targets, *masks, 0)) == [(8,)]
    assert shapes_of(OPS.ctc_marginals(log_probs, targets, *masks, 0)) == [(8,), (8, 30, 12)]


def test_projective_ops_have_the_right_shapes_on_a_gpu(fake: Callable[..., Tensor]) -> None:
    arcs, mask = fake(8, 11, 11), fake(8, 10, dtype=torch.bool)
    uniforms = fake(4, 8, 22, dtype=torch.float64)
    assert shapes_of(OPS.projective_log_partition(arcs, mask, True)) == [(8,)]
    for single_root, nodes in ((True, 10), (False, 11)):
        found = OPS.projective_marginals(arcs, mask, single_root, True)
        kept = 3 * (nodes**3 - nodes) // 6 + 3 * nodes**2
        assert shapes_of(found) == [(8,), (8, 11, 11), (8, kept)]
        tangent = OPS.projective_tangent(arcs, found[2], mask, arcs, single_root)
        assert shapes_of(tangent) == [(8, 11, 11)]
    heads, scores = OPS.projective_best(arcs, mask, True)
    assert shapes_of((heads, scores)) == [(8, 10), (8,)]
    drawn, possible = OPS.projective_sample(arcs, mask, uniforms, True)
    assert shapes_of((drawn, possible)) == [(4, 8, 10), (8,)]
    assert (heads.dtype, drawn.dtype, possible.dtype) == (torch.int64, torch.int64, torch.bool)
    assert serves_arcs(arcs)
    assert not serves_arcs(fake(1, 257, 257))


def test_span_ops_have_the_right_shapes_on_a_gpu(fake: Callable[..., Tensor]) -> None:
    spans, mask = fake(8, 10, 10), fake(8, 10, dtype=torch.bool)
    uniforms = fake(4, 8, 10, dtype=torch.float64)
    assert shapes_of(OPS.span_log_partition(spans, mask)) == [(8,)]
    found = OPS.span_marginals(spans, mask, True)
    assert shapes_of(found) == [(8,), (8, 10, 10), (8, (10**3 - 10) // 6 + 100)]
    assert shapes_of(OPS.span_tangent(found[2], mask, spans)) == [(8, 10, 10)]
    chosen, scores = OPS.span_best(spans, mask)
    assert shapes_of((chosen, scores)) == [(8, 10, 10), (8,)]
    drawn, possible = OPS.span_sample(spans, mask, uniforms)
    assert shapes_of((drawn, possible)) == [(4, 8, 10, 10), (8,)]
    assert chosen.dtype == drawn.dtype == possible.dtype == torch.bool
    assert serves_spans(spans.unsqueeze(-1))
    assert not serves_spans(fake(1, 257, 257, 1))


def test_semi_markov_ops_have_the_right_shapes_on_a_gpu(fake: Callable[..., Tensor]) -> None:
    segments, transitions = fake(8, 10, 4, 3), fake(1, 1, 3, 3)
    mask, pairs = fake(8, 10, dtype=torch.bool), fake(8, 9, 3, 3)
    uniforms = fake(5, 8, 20, dtype=torch.float64)
    given = segments, transitions, mask
    assert shapes_of(OPS.semi_markov_log_partition(*given)) == [(8,)]
    assert shapes_of(OPS.semi_markov_marginals(*given)) == [(8,), (8, 10, 4, 3), (8, 9, 3, 3)]
    along = OPS.semi_markov_tangent(segments, pairs, mask, segments, None, True)
    assert shapes_of(along) == [(8, 10, 4, 3), (8, 9, 3, 3)]
    labels, scores = OPS.semi_markov_best(*given)
    assert shapes_of((labels, scores)) == [(8, 10), (8,)]
    drawn, possible = OPS.semi_markov_sample(*given, uniforms)
    assert shapes_of((drawn, possible)) == [(5, 8, 10), (8,)]
    assert (labels.dtype, drawn.dtype, possible.dtype) == (torch.int64, torch.int64, torch.bool)
    assert serves_segments(segments, transitions)
    assert not serves_segments(fake(1, 9, 65, 3), transitions)
    assert not serves_segments(fake(1, 9, 4, 65), fake(1, 1, 65, 65))


def test_tensors_of_two_devices_are_refused(fake: Callable[..., Tensor]) -> None:
    unary = fake(4, 5, 3)
    on_cpu = torch.empty(4, 4, 3, 3)
    assert not serves(unary, on_cpu)
    with pytest.raises(RuntimeError, match=r"must be on one device, got cpu, cuda:0"):
        OPS.chain_marginals(unary, on_cpu, None)


class Sums(torch.nn.Module):
    """One op of each structure."""

    def forward(
        self, unary: Tensor, transitions: Tensor, moves: Tensor, segments: Tensor
    ) -> Tensor:
        log_partition, nodes, _ = OPS.chain_marginals(unary, transitions, None)
        paths, scores = OPS.alignment_best(moves, None)
        total, masses, _ = OPS.semi_markov_marginals(segments, transitions, None)
        chains = log_partition.sum() + nodes.sum() + scores.sum() + paths.sum()
        return chains + total.sum() + masses.sum()


def ops_in(graph: torch.fx.Graph) -> list[str]:
    """Return the names of the ops of foveal in a graph, without those that have no kernels."""
    targets = [str(node.target) for node in graph.nodes]
    assert not any("triton_kernel" in target for target in targets)
    return [match[1] for target in targets if (match := re.match(r"foveal_triton\.(\w+)", target))]


@pytest.fixture
def potentials(fake: Callable[..., Tensor]) -> tuple[Tensor, ...]:
    return fake(4, 5, 3), fake(1, 1, 3, 3), fake(4, 6, 7, 3), fake(4, 5, 2, 3)


WHOLE = ["chain_marginals", "alignment_best", "semi_markov_marginals"]


def test_make_fx_traces_each_op_as_one_node(potentials: tuple[Tensor, ...]) -> None:
    graph = make_fx(Sums(), tracing_mode="fake")(*potentials)
    assert ops_in(graph.graph) == WHOLE


def test_export_keeps_each_op_as_one_node(potentials: tuple[Tensor, ...]) -> None:
    exported = torch.export.export(Sums(), potentials)
    assert ops_in(exported.graph) == WHOLE


def test_compile_takes_the_whole_function(potentials: tuple[Tensor, ...]) -> None:
    graphs: list[torch.fx.Graph] = []

    def backend(module: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(module.graph)
        return module.forward

    found = torch.compile(Sums(), backend=backend, fullgraph=True)(*potentials)
    assert found.device.type == "cuda"
    (graph,) = graphs
    assert ops_in(graph) == WHOLE
