"""The speed of the C++ kernels, compared with the peers, our own passes in PyTorch operations, and the floor.

    floor      the same loss on the potentials themselves, with a multiplication by 1 instead of
               inference: the cost of autograd
    tangent    time of the tangent kernel divided by the time of the marginals kernel
    threads    two threads compared with one, in wall-clock time
    lengths    the training step on lengths drawn from T/2 to T
    subsets    k of n items, which no peer supports: our own passes, and the floor

`python -m benchmarks.structures --native` runs all of them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from foveal.distributions import (
    Alignment,
    KSubset,
    LinearChain,
    ProjectiveTree,
    SemiMarkov,
    SpanTree,
)
from foveal.inference import _native
from foveal.masking import mask_from_lengths

from .cases import SEED, US, Call, Case, Side, Size
from .families import CTC_SIZES, SEGMENT_SIZES
from .peers import TorchStructModel, segments_as_edges, torch_struct_class, with_gradient
from .results import Row, Sense
from .timing import Plan, Timing, compare, use_one_thread
from .tree_peers import one_label, root_on_diagonal

REFERENCE = "reference passes"

_CHAIN_TRAIN = {
    (32, 25, 2): 30.0,
    (64, 25, 2): 30.0,
    (32, 100, 2): 30.0,
    (32, 50, 20): 80.0,
    (16, 200, 50): 250.0,
    (16, 1000, 10): 45.0,
}
_TREE_TRAIN = {
    (32, 10): (80.0, 50.0),
    (32, 20): (80.0, 50.0),
    (32, 40): (25.0, 20.0),
    (16, 80): (25.0, 20.0),
}
_SPAN_TRAIN = ((32, 20), (32, 40))

# Targets: how many times faster than the peer.
TARGETS = {
    **{f"chain train {size} vs torch-struct": target for size, target in _CHAIN_TRAIN.items()},
    **{
        f"chain train {size} vs {peer}": 15.0
        for size in _CHAIN_TRAIN
        if size != (64, 25, 2)
        for peer in ("pytorch-crf", "supar")
    },
    "chain argmax (32, 25, 2) vs pytorch-crf": 50.0,
    "chain argmax (32, 100, 2) vs pytorch-crf": 50.0,
    "chain argmax (32, 50, 20) vs pytorch-crf": 15.0,
    **{
        f"projective tree train {size} vs torch-struct": both[0]
        for size, both in _TREE_TRAIN.items()
    },
    **{f"projective tree train {size} vs supar": both[1] for size, both in _TREE_TRAIN.items()},
    **{f"span tree train {size} vs torch-struct": 35.0 for size in _SPAN_TRAIN},
    **{
        f"CTC {operation} {size} vs torch": 1.0
        for operation in ("log_partition", "loss")
        for size in CTC_SIZES
    },
}
_GRID_TRAIN = ((32, 16, 16), (32, 50, 50), (16, 100, 100))
_FLOOR_TARGETS = {
    (32, 25, 2): 2.0,
    (64, 25, 2): 2.0,
    (32, 100, 2): 2.0,
    (32, 50, 20): 3.0,
    (16, 200, 50): 3.0,
}
_SUBSETS = ((32, 25, 3), (32, 100, 5), (32, 100, 20), (16, 200, 20))  # (batch, items, k)
_PLAN = Plan(rounds=15, budget=4.0)


def without_kernels(call: Call) -> Call:
    """Return the same call, with the passes in PyTorch operations."""

    def slow() -> object:
        _native._IN_USE = False
        try:
            return call()
        finally:
            _native._IN_USE = True

    return slow


def reference_of(form: str) -> str:
    """Return the name of our own passes in the list of peers of a form."""
    return f"{REFERENCE}, {form}"


def beside_reference(case: Case, form: str) -> Case:
    """Add our own reference passes to a case as one more peer."""
    operations = {
        name: {**calls, reference_of(form): without_kernels(calls[US])}
        for name, calls in case.operations.items()
    }
    return replace(case, operations=operations)


def rows() -> Iterator[Row]:
    """Yield the rows of floor, tangent, threads, lengths and subsets."""
    yield from floor_rows()
    yield from tangent_rows()
    yield from thread_rows()
    yield from length_rows()
    yield from segment_rows()
    yield from alignment_rows()
    yield from subset_rows()


def floor_rows() -> Iterator[Row]:
    """Yield our training step divided by the floor, on edges as in `chain_cases`."""
    for size, target in _FLOOR_TARGETS.items():
        edges, weights = _drawn(*_edge_shape(size)), _drawn(*_edge_shape(size))
        no_unary = torch.zeros(size)

        def train(
            edges: Tensor = edges, weights: Tensor = weights, unary: Tensor = no_unary
        ) -> object:
            leaf = edges.detach().requires_grad_()
            return torch.autograd.grad(
                (LinearChain(unary, leaf).pair_marginals() * weights).sum(), leaf
            )

        def floor(edges: Tensor = edges, weights: Tensor = weights) -> object:
            leaf = edges.detach().requires_grad_()
            return torch.autograd.grad((leaf * 1.0 * weights).sum(), leaf)

        timing = compare({"floor": floor, US: train}, reference="floor", plan=_PLAN)[US]
        yield _row(f"chain train {size} over the autograd floor", timing, target)


def tangent_rows() -> Iterator[Row]:
    """Yield the time of the tangent kernel divided by the time of the marginals kernel."""
    ops = torch.ops.foveal_native
    for size in _CHAIN_TRAIN:
        unary, edges, along = (
            torch.zeros(size),
            _drawn(*_edge_shape(size)),
            _drawn(*_edge_shape(size)),
        )
        _, nodes, pairs = ops.chain_marginals(unary, edges, None)
        calls: dict[str, Call] = {
            "marginals": lambda u=unary, e=edges: ops.chain_marginals(u, e, None),
            US: lambda n=nodes, p=pairs, g=along: ops.chain_tangent(n, p, None, None, g, True),
        }
        yield _tangent_row(f"chain tangent {size}", calls)
    for batch, words in _TREE_TRAIN:
        arcs, along = _drawn(batch, words + 1, words + 1), _drawn(batch, words + 1, words + 1)
        _, found, kept = ops.projective_marginals(arcs, None, False, True)
        calls = {
            "marginals": lambda a=arcs: ops.projective_marginals(a, None, False, True),
            US: lambda m=found, k=kept, g=along: ops.projective_tangent(m, k, None, g, False),
        }
        yield _tangent_row(f"projective tree tangent {(batch, words)}", calls)
        _, _, factors, safe = ops.spanning_marginals(arcs, None, False)
        calls = {
            "marginals": lambda a=arcs: ops.spanning_marginals(a, None, False),
            US: lambda a=arcs, k=factors, s=safe, g=along: ops.spanning_tangent(
                a, None, k, s, g, False
            ),
        }
        yield _tangent_row(f"spanning tree tangent {(batch, words)}", calls)


def thread_rows() -> Iterator[Row]:
    """Yield the speedup of two threads over one for marginals, in wall-clock time."""
    unary, edges = torch.zeros(64, 100, 20), _drawn(64, 99, 20, 20)
    arcs = _drawn(64, 41, 41)
    ops = torch.ops.foveal_native
    cases: dict[str, Call] = {
        "chain marginals (64, 100, 20)": lambda: ops.chain_marginals(unary, edges, None),
        "projective tree marginals (64, 40)": lambda: ops.projective_marginals(
            arcs, None, False, True
        ),
    }
    for name, call in cases.items():
        calls = {"two": _with_threads(2, call), US: _with_threads(1, call)}
        timing = compare(calls, reference="two", plan=_PLAN, clock=time.perf_counter)[US]
        use_one_thread()
        yield _row(f"{name} two threads over one", timing, 1.7, sense=">=", unit="x faster")


def length_rows() -> Iterator[Row]:
    """Yield the training step on lengths uniform in T/2 .. T, compared with torch-struct, which takes lengths."""
    yield from _chain_lengths()
    yield from _tree_lengths()
    yield from _span_lengths()


def _chain_lengths() -> Iterator[Row]:
    for size in _CHAIN_TRAIN:
        batch, length, _ = size
        edges, weights, lengths = (
            _drawn(*_edge_shape(size)),
            _drawn(*_edge_shape(size)),
            _lengths(batch, length),
        )
        mask, no_unary = mask_from_lengths(lengths, length), torch.zeros(size)
        calls = _steps(
            edges,
            {
                US: lambda leaf, u=no_unary, m=mask, w=weights: (
                    LinearChain(u, leaf, m).pair_marginals() * w
                ),
                "torch-struct": lambda leaf, n=lengths, w=weights: (
                    torch_struct_class("LinearChainCRF")(
                        with_gradient(leaf.transpose(-1, -2)), lengths=n
                    ).marginals.transpose(-1, -2)
                    * w
                ),
            },
        )
        yield from _length_rows(f"chain train {size}", calls)


def _tree_lengths() -> Iterator[Row]:
    for batch, words in _TREE_TRAIN:
        arcs, weights, lengths = (
            _drawn(batch, words + 1, words + 1),
            _drawn(batch, words + 1, words + 1),
            _lengths(batch, words),
        )
        mask, their_weights = mask_from_lengths(lengths, words), root_on_diagonal(weights)
        calls = _steps(
            arcs,
            {
                US: lambda leaf, m=mask, w=weights: (
                    ProjectiveTree(leaf, single_root=False, mask=m).marginals() * w
                ),
                "torch-struct": lambda leaf, n=lengths, w=their_weights: (
                    torch_struct_class("DependencyCRF")(
                        root_on_diagonal(leaf), lengths=n, multiroot=True
                    ).marginals
                    * w
                ),
            },
        )
        yield from _length_rows(f"projective tree train {(batch, words)}", calls)


def segment_rows() -> Iterator[Row]:
    """Semi-Markov models: the tangent pass over the marginals, and varied lengths.

    For varied lengths, only the time of torch-struct is meaningful: past the end of the shortest sequence
    of a batch, its sums leave out segments of more than one position.
    """
    ops = torch.ops.foveal_native
    for size in SEGMENT_SIZES:
        batch, length, _, labels = size
        segments, weights, lengths = _drawn(*size), _drawn(*size), _lengths(batch, length)
        links = _drawn(batch, length - 1, labels, labels)
        _, found, pairs = ops.semi_markov_marginals(segments, links, None)
        calls: dict[str, Call] = {
            "marginals": lambda s=segments, e=links: ops.semi_markov_marginals(s, e, None),
            US: lambda m=found, p=pairs, g=weights: ops.semi_markov_tangent(
                m, p, None, g, None, True
            ),
        }
        yield _tangent_row(f"semi-Markov tangent {size}", calls)

        mask = mask_from_lengths(lengths, length)
        sides = {
            US: Side(
                make=lambda s, e, m=mask: SemiMarkov(s, e, m),
                potentials=(segments, links),
                weights=weights,
            ),
            "torch-struct": Side(
                make=lambda edges, n=lengths: TorchStructModel(
                    "SemiMarkovCRF", edges, lengths=n + 1
                ),
                potentials=(segments_as_edges(segments, links),),
                weights=segments_as_edges(weights, torch.zeros_like(links), forbidden=0.0),
            ),
        }
        steps: dict[str, Call] = {name: side.train for name, side in sides.items()}
        yield from _length_rows(f"semi-Markov train {size}", steps)


def _span_lengths() -> Iterator[Row]:
    for batch, words in _SPAN_TRAIN:
        spans, weights, lengths = (
            _drawn(batch, words, words),
            _drawn(batch, words, words),
            _lengths(batch, words),
        )
        mask, their_weights = mask_from_lengths(lengths, words), one_label(weights)
        calls = _steps(
            spans,
            {
                US: lambda leaf, m=mask, w=weights: SpanTree(leaf, m).marginals() * w,
                "torch-struct": lambda leaf, n=lengths, w=their_weights: (
                    torch_struct_class("TreeCRF")(one_label(leaf), lengths=n).marginals * w
                ),
            },
        )
        yield from _length_rows(f"span tree train {(batch, words)}", calls)


def alignment_rows() -> Iterator[Row]:
    """Grids, which have no peer: tangent divided by marginals, and varied lengths of both sides."""
    ops = torch.ops.foveal_native
    for size in _GRID_TRAIN:
        batch, num_source, num_target = size
        shape = batch, num_source + 1, num_target + 1, 3
        moves, along = _drawn(*shape), _drawn(*shape)
        found = ops.alignment_marginals(moves, None)[1]
        calls: dict[str, Call] = {
            "marginals": lambda x=moves: ops.alignment_marginals(x, None),
            US: lambda m=found, g=along: ops.alignment_tangent(m, None, g),
        }
        yield _tangent_row(f"alignment tangent {size}", calls)
        masks = [
            mask_from_lengths(_lengths(batch, longest), longest)
            for longest in (num_source, num_target)
        ]
        losses = {US: lambda leaf, m=masks, w=along: Alignment(leaf, *m).marginals() * w}
        yield from _length_rows(f"alignment train {size}", _steps(moves, losses))


def subset_rows() -> Iterator[Row]:
    """Subsets: the training step compared with our own passes and with the floor, and the tangent."""
    ops = torch.ops.foveal_native
    for batch, items, k in _SUBSETS:
        scores, weights = _drawn(batch, items), _drawn(batch, items)
        calls = _steps(
            scores,
            {
                US: lambda leaf, k=k, w=weights: KSubset(leaf, k).marginals() * w,
                "floor": lambda leaf, w=weights: leaf * 1.0 * w,
            },
        )
        calls[REFERENCE] = without_kernels(calls[US])
        timings = compare(calls, reference=US, plan=_PLAN)
        name = f"k-subset train {(batch, items, k)}"
        yield _row(f"{name} vs {REFERENCE}", timings[REFERENCE], None, unit="x faster")
        timing = compare(calls, reference="floor", plan=_PLAN)[US]
        yield _row(f"{name} over the autograd floor", timing, None)
        _, found, kept = ops.k_subset_marginals(scores, None, k)
        kernels: dict[str, Call] = {
            "marginals": lambda s=scores, k=k: ops.k_subset_marginals(s, None, k),
            US: lambda m=found, q=kept, g=weights: ops.k_subset_tangent(m, q, None, g),
        }
        yield _tangent_row(f"k-subset tangent {(batch, items, k)}", kernels)


def _steps(potentials: Tensor, losses: Mapping[str, Callable[[Tensor], Tensor]]) -> dict[str, Call]:
    """Return a training step for each loss, which computes its gradient in the potentials."""

    def step(loss: Callable[[Tensor], Tensor]) -> Call:
        def run() -> object:
            leaf = potentials.detach().requires_grad_()
            return torch.autograd.grad(loss(leaf).sum(), leaf)

        return run

    return {name: step(loss) for name, loss in losses.items()}


def _length_rows(name: str, calls: dict[str, Call]) -> Iterator[Row]:
    calls[REFERENCE] = without_kernels(calls[US])
    timings = compare(calls, reference=US, plan=_PLAN)
    milliseconds = sorted(1e3 * seconds for seconds in timings[US].seconds)
    yield Row(
        name=f"{name} varied lengths time",
        value=milliseconds[len(milliseconds) // 2],
        unit="ms",
        spread=(milliseconds[0], milliseconds[-1]),
        seeds=(SEED,),
    )
    for peer, timing in timings.items():
        if peer != US:
            yield _row(f"{name} varied lengths vs {peer}", timing, None, unit="x faster")


def _tangent_row(name: str, kernels: Mapping[str, Call]) -> Row:
    """Return the time of the tangent pass divided by the time of the marginals."""
    timing = compare(kernels, reference="marginals", plan=_PLAN)[US]
    return _row(f"{name} over marginals", timing, 1.5)


def _row(
    name: str, timing: Timing, target: float | None, *, sense: Sense = "<=", unit: str = "times"
) -> Row:
    return Row(
        name=name,
        value=timing.ratio,
        unit=unit,
        spread=timing.ratio_spread,
        seeds=(SEED,),
        target=target,
        sense=None if target is None else sense,
    )


def _with_threads(count: int, call: Call) -> Call:
    """Return the call on `count` threads; the setting stays for later calls."""

    def run() -> object:
        if torch.get_num_threads() != count:
            torch.set_num_threads(count)
        return call()

    return run


def _edge_shape(size: Size) -> Size:
    batch, length, states = size
    return batch, length - 1, states, states


def _drawn(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(SEED))


def _lengths(batch: int, longest: int) -> Tensor:
    generator = torch.Generator().manual_seed(SEED)
    lengths = torch.randint((longest + 1) // 2, longest + 1, (batch,), generator=generator)
    lengths[0] = longest  # torch-struct needs one sequence of full length
    return lengths
