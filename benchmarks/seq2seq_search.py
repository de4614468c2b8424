"""How many words per second does search write, compared with a plain loop and with yoyodyne?

All models have the same sizes: a bidirectional LSTM encoder, additive attention, an LSTM decoder. The
weights are random, and the score of the end token is so low that no search chooses it: every output
has the same number of tokens, and all candidates take the same number of steps. Sources have equal length,
and the batch is in memory: the benchmark times only encoding and search, on one core. Foveal uses its C++ kernels.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch
from torch import Tensor

from foveal.decoding import beam_search, greedy
from foveal.inference import _native
from foveal.models import DecoderSpec, Seq2SeqSpec, TextEncoderSpec

from .results import Row
from .seq2seq_plain import BEGIN, END, PlainSeq2Seq
from .seq2seq_yoyodyne import Yoyodyne
from .timing import Plan, Timing, compare

OURS, HALF, PLAIN, PEER = "foveal", "foveal in half precision", "plain loop", "yoyodyne"
BARE = "foveal without kernels"
WIDTH = 5
WIDE_VOCABULARY = 8_000
BETWEEN_SEARCHES = 64  # batch size of the comparison of beam and greedy search

# Targets: words per second relative to the plain loop, and relative to yoyodyne by batch size.
PLAIN_TARGET = 1.5
PEER_TARGETS = {1: {1: 2.0, 32: 4.0, 256: 4.0}, WIDTH: {1: 2.0, 32: 12.0, 256: 12.0}}
LEAST_HALF = 32  # for smaller batches, half precision is slower
# Targets: time relative to greedy search, by vocabulary size.
BEAM_TARGETS = {60: 2.0, WIDE_VOCABULARY: 5.0}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """The sizes of a character-level model."""

    hidden: int = 256
    embedding: int = 128
    vocabulary: int = 60
    source: int = 12
    target: int = 10

    def __str__(self) -> str:
        return (
            f"hidden {self.hidden}, vocabulary {self.vocabulary}, {self.source} in, "
            f"{self.target} out"
        )


def sources(sizes: Sizes, batch: int) -> Tensor:
    """Return tokens that are special tokens in none of the libraries."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(6, sizes.vocabulary, (batch, sizes.source), generator=generator)


def ours(
    sizes: Sizes, batch: int, width: int, *, half: bool = False, kernels: bool = True
) -> Callable[[], Tensor]:
    """Return a call that encodes and searches like a predictor."""
    torch.manual_seed(0)
    spec = Seq2SeqSpec(
        encoder=TextEncoderSpec(
            embedding_size=sizes.embedding, hidden_size=sizes.hidden, bidirectional=True
        ),
        decoder=DecoderSpec(embedding_size=sizes.embedding, hidden_size=sizes.hidden),
    )
    model = spec.build(
        source_vocabulary=sizes.vocabulary, target_vocabulary=sizes.vocabulary
    ).eval()
    with torch.no_grad():
        model.decoder.output.bias[END] = -1e4
    tokens = sources(sizes, batch)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    before, _native._IN_USE = _native._IN_USE, kernels and _native._is_installed()
    prepared = model.prepare(half=half)
    settings: dict[str, Any] = {"begin": BEGIN, "end": END, "max_length": sizes.target}

    def search() -> Tensor:
        with torch.inference_mode():
            state = prepared.start(tokens, mask)
            if width == 1:
                return greedy(prepared.stepper, state, **settings).tokens[:, 0]
            return beam_search(prepared.stepper, state, beam_size=width, **settings).tokens[:, 0]

    search()  # the first call prepares the weights, with kernels or without
    _native._IN_USE = before
    return search


def plain(sizes: Sizes, batch: int, width: int) -> Callable[[], Tensor]:
    """Return a call of the plain loop."""
    torch.manual_seed(0)
    model = PlainSeq2Seq(sizes.vocabulary, sizes.embedding, sizes.hidden).eval()
    with torch.no_grad():
        model.output.bias[END] = -1e4
    tokens = sources(sizes, batch)
    lengths = torch.full((batch,), sizes.source)

    def search() -> Tensor:
        if width == 1:
            return model.greedy(tokens, lengths, sizes.target)
        return model.beam(tokens, lengths, sizes.target, width)

    return search


def peer(sizes: Sizes, batch: int, width: int) -> Callable[[], Tensor]:
    """Return a call of yoyodyne, which leaves the begin token in the outputs of a beam."""
    torch.manual_seed(0)
    model = Yoyodyne(
        vocabulary=sizes.vocabulary,
        embedding=sizes.embedding,
        hidden=sizes.hidden,
        max_length=sizes.target,
    )
    tokens = sources(sizes, batch)
    return lambda: model.search(tokens, width)[:, -sizes.target :]


def candidates(
    sizes: Sizes, batch: int, width: int, *, with_peer: bool
) -> dict[str, Callable[[], Tensor]]:
    """Return all candidates, after checking that they write the same number of tokens."""
    calls = {
        OURS: ours(sizes, batch, width),
        HALF: ours(sizes, batch, width, half=True),
        BARE: ours(sizes, batch, width, kernels=False),
        PLAIN: plain(sizes, batch, width),
    }
    if with_peer:
        calls[PEER] = peer(sizes, batch, width)
    for name, call in calls.items():
        shape = tuple(call().shape)
        if shape != (batch, sizes.target):
            raise RuntimeError(f"{name} wrote {shape}, expected {(batch, sizes.target)}.")
    return calls


def rows(
    sizes: Sizes,
    plan: Plan,
    *,
    batches: Sequence[int] = (1, 32, 256),
    widths: Sequence[int] = (1, WIDTH),
    with_peer: bool = True,
) -> Iterator[Row]:
    """Yield the words per second and their ratios."""
    for batch in batches:
        for width in widths:
            calls = candidates(sizes, batch, width, with_peer=with_peer)
            timings = compare(calls, reference=OURS, plan=plan)
            how = "greedy" if width == 1 else f"beam {width}"
            what = f"{how}, batch {batch} ({sizes})"
            for name, timing in timings.items():
                yield words_per_second(f"{what}, {name}", batch, timing)
            for us in (OURS, HALF) if batch >= LEAST_HALF else (OURS,):
                yield times_faster(f"{what}, {us} to the {PLAIN}", timings, PLAIN, us, PLAIN_TARGET)
                if with_peer:
                    target = PEER_TARGETS[width].get(batch)
                    yield times_faster(f"{what}, {us} to {PEER}", timings, PEER, us, target)


def beam_rows(
    sizes: Sizes,
    plan: Plan,
    *,
    batch: int = BETWEEN_SEARCHES,
    vocabularies: Sequence[int] = (60, WIDE_VOCABULARY),
) -> Iterator[Row]:
    """Yield the time of beam search divided by the time of greedy search."""
    for vocabulary in vocabularies:
        these = replace(sizes, vocabulary=vocabulary)
        calls = {"greedy": ours(these, batch, 1), "beam": ours(these, batch, WIDTH)}
        timing = compare(calls, reference="greedy", plan=plan)["beam"]
        target = BEAM_TARGETS.get(vocabulary)
        yield Row(
            name=f"beam {WIDTH} to greedy, batch {batch} ({these})",
            value=timing.ratio,
            unit="x greedy",
            spread=timing.ratio_spread,
            target=target,
            sense=None if target is None else "<=",
        )


def words_per_second(name: str, batch: int, timing: Timing) -> Row:
    """Return the outputs per second."""
    rates = [batch / seconds for seconds in timing.seconds]
    return Row(name=name, value=median(rates), unit="words/s", spread=(min(rates), max(rates)))


def times_faster(
    name: str,
    timings: dict[str, Timing],
    other: str,
    us: str,
    target: float | None = None,
) -> Row:
    """Return the time of the other candidate divided by ours, round by round."""
    pairs = zip(timings[other].seconds, timings[us].seconds, strict=False)
    each = [theirs / own for theirs, own in pairs]
    return Row(
        name=name,
        value=median(each),
        unit="x faster",
        spread=(min(each), max(each)),
        target=target,
        sense=None if target is None else ">=",
    )
