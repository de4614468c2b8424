"""How do time and memory grow with the length of the input, the vocabulary, the batch and the beam?

    python -m benchmarks.growth                   four minutes, on one thread, when nothing else runs
    python -m benchmarks.growth --axes beam       only some axes; the file keeps the others
    python -m benchmarks.growth --calls 'linear chain'
    python -m benchmarks.growth --most 100        only small sizes

A call is one training step (loss and gradient) or one prediction, at several sizes of one axis. The sizes take turns in
every round, and a time is the median CPU time over rounds. Memory is the largest size of all tensors during a call, less
their size before it. An exponent is the slope of a line through the logarithms of sizes and figures, over the largest
sizes: below, the constant cost of a call hides the growth. Its target is the exponent of the algorithm plus 0.1.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch

from foveal.attention import softmax_attention
from foveal.distributions import LinearChain, ProjectiveTree, SpanningTree
from foveal.models import TransformerEncoderSpec

from . import seq2seq_search, seq2seq_training, transformer
from .cases import Call, Side
from .results import Results, Row
from .seq2seq_memory import peak_of
from .timing import Plan, compare, use_one_thread

OUT = Path("results/growth.json")
TOLERANCE = 0.1  # above the exponent of the algorithm
FITTED = 10.0  # the sizes of a fit: the largest one to a tenth of it
HIDDEN, LABELS = 128, 20
PLAN = Plan(rounds=9, least_rounds=3, budget=2.0, block=0.01, warm_up=0.05)
# A training step on 64 x 25 tokens must need less memory than its scores alone would: one number for each token and word.
WIDEST, WIDE = 100_000, "encoder-decoder, 64 x 25 tokens"
WIDEST_MEGABYTES = 64 * 25 * WIDEST * 4 / 1e6


class Series(NamedTuple):
    """One call at several sizes of one axis."""

    axis: str
    call: str
    sizes: Sequence[int]
    make: Callable[[int], Call]
    time: int  # exponents of the algorithm
    memory: int

    @property
    def name(self) -> str:
        """The part of a row's name that all its figures share."""
        return f"by {self.axis}, {self.call}"


def chain(length: int) -> Call:
    """One chain: marginals, a linear loss of them and its gradient."""
    torch.manual_seed(0)
    unary, transitions = torch.randn(1, length, LABELS), torch.randn(LABELS, LABELS)
    make = lambda potentials: LinearChain(potentials, transitions)  # noqa: E731
    return Side(make=make, potentials=(unary,), weights=torch.randn_like(unary)).train


def projective_tree(length: int) -> Call:
    """One sentence; the same for its arcs."""
    return _arcs(length, ProjectiveTree)


def spanning_tree(length: int) -> Call:
    """One sentence; the same for its arcs."""
    return _arcs(length, SpanningTree)


def _arcs(length: int, kind: type[ProjectiveTree | SpanningTree]) -> Call:
    torch.manual_seed(0)
    arcs = torch.randn(1, length + 1, length + 1)
    return Side(make=kind, potentials=(arcs,), weights=torch.randn_like(arcs)).train


def transformer_encoder(length: int) -> Call:
    """One text, two layers with four heads."""
    spec = TransformerEncoderSpec(
        model_size=HIDDEN, num_heads=4, num_layers=2, dropout=0.0, positions="sinusoidal"
    )
    return transformer.step(spec, 1, length, ours=True)


def training(**changed: int) -> Call:
    """A training step of an encoder-decoder with additive attention."""
    given = {"hidden": HIDDEN, "batch": 8, "source": 25, "target": 25, "vocabulary": 1_000}
    sizes = seq2seq_training.Sizes(**given | changed)
    torch.manual_seed(0)
    model = seq2seq_training.model_with(softmax_attention(HIDDEN, HIDDEN), sizes)
    return seq2seq_training.our_step(model, seq2seq_training.Batch.of(sizes))


def search(width: int = 1, batch: int = 8, **changed: int) -> Call:
    """A search with the same model, whose outputs all have the most allowed tokens."""
    given = {"hidden": HIDDEN, "vocabulary": 1_000, "source": 25, "target": 10}
    return seq2seq_search.ours(seq2seq_search.Sizes(**given | changed), batch, width)


LONG = (10, 30, 100, 300, 1_000, 3_000, 10_000)
SQUARE = (10, 20, 40, 80, 160, 320, 640, 1_280)
CUBIC = (10, 20, 40, 80, 160, 320)
WORDS = (50, 500, 5_000, 20_000, 50_000, WIDEST)
BATCH = (1, 4, 16, 32, 64, 128, 256)
SERIES = (
    Series("length", "linear chain", LONG, chain, 1, 1),
    # The gradient keeps the conditional probabilities of all split points of all spans.
    Series("length", "projective tree", CUBIC, projective_tree, 3, 3),
    Series("length", "spanning tree", CUBIC, spanning_tree, 3, 2),
    Series("length", "Transformer encoder", SQUARE, transformer_encoder, 2, 2),
    Series(
        "length",
        "encoder-decoder, source and target",
        SQUARE[:-1],
        lambda n: training(batch=1, source=n, target=n),
        2,
        2,
    ),
    Series("length", "encoder-decoder, source", LONG, lambda n: training(batch=1, source=n), 1, 1),
    Series("length", "greedy search, source", LONG, lambda n: search(batch=1, source=n), 1, 1),
    Series("length", "greedy search, output", LONG[:5], lambda n: search(batch=1, target=n), 1, 1),
    Series(
        "vocabulary",
        WIDE,
        WORDS,
        lambda n: training(batch=64, vocabulary=n),
        1,
        1,
    ),
    Series("vocabulary", "greedy search", WORDS, lambda n: search(vocabulary=n), 1, 1),
    Series("batch", "encoder-decoder", BATCH, lambda n: training(batch=n), 1, 1),
    Series("batch", "greedy search", BATCH, lambda n: search(batch=n), 1, 1),
    Series("beam", "beam search", (1, 2, 4, 8, 16, 32), lambda n: search(width=n), 1, 1),
)
AXES = tuple(dict.fromkeys(series.axis for series in SERIES))
CALLS = tuple(dict.fromkeys(series.call for series in SERIES))


def rows(series: Series, most: int | None = None, plan: Plan = PLAN) -> Iterator[Row]:
    """Yield time and memory at each size up to `most`, and both exponents."""
    sizes = [size for size in series.sizes if most is None or size <= most]
    calls = {str(size): series.make(size) for size in sizes}
    timings = compare(calls, reference=str(sizes[0]), plan=plan)
    seconds = [timings[str(size)].seconds for size in sizes]
    peaks = [peak_of(call) for call in calls.values()]
    for size, taken, peak in zip(sizes, seconds, peaks, strict=True):
        milliseconds = [1e3 * each for each in taken]
        spread = min(milliseconds), max(milliseconds)
        time = median(milliseconds)
        yield Row(name=f"time {series.name}, {size}", value=time, unit="ms", spread=spread)
        widest = series.call == WIDE and size == WIDEST
        yield Row(
            name=f"memory {series.name}, {size}",
            value=peak / 1e6,
            unit="MB",
            target=WIDEST_MEGABYTES if widest else None,
            sense="<=" if widest else None,
        )
    rounds = min(map(len, seconds))  # a slow size stops early
    each = [exponent(sizes, [taken[i] for taken in seconds]) for i in range(rounds)]
    yield Row(
        name=f"exponent of time {series.name}",
        value=exponent(sizes, [median(taken) for taken in seconds]),
        unit="exponent",
        spread=(min(each), max(each)),
        target=series.time + TOLERANCE,
        sense="<=",
    )
    yield Row(
        name=f"exponent of memory {series.name}",
        value=exponent(sizes, peaks),
        unit="exponent",
        target=series.memory + TOLERANCE,
        sense="<=",
    )


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Compute the slope of the logarithms by least squares, over the largest sizes and at least two."""
    chosen = [size * FITTED >= sizes[-1] or size in sizes[-2:] for size in sizes]
    across, up = (np.log(np.array(each, dtype=float)[chosen]) for each in (sizes, values))
    return float(np.polyfit(across, up, 1)[0])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write the figures of some axes or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth")
    parser.add_argument("--axes", nargs="+", choices=AXES, default=AXES)
    parser.add_argument("--calls", nargs="+", choices=CALLS, default=CALLS)
    parser.add_argument("--most", type=int, help="the largest size; by default all sizes")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    use_one_thread()
    results = Results.here("python -m benchmarks.growth", packages=["foveal-native"])
    results = results.continued_from(given.out)
    for series in SERIES:
        if series.axis in given.axes and series.call in given.calls:
            found = [*rows(series, given.most)]
            results = results.with_rows(found)
            results.save(given.out)  # after every series: a later one may fail
            for row in found[-2:]:
                print(f"{row.name}: {row.value:.2f}, target {row.target}", flush=True)


if __name__ == "__main__":
    main()
