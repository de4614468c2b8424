"""Beam search in one graph: tokens of sources in, the best outputs out, in one call of any runtime.

The rules are those of `foveal.decoding`. A `Loop` carries the live hypotheses and the scores of the K best ended ones,
and writes a journal of each step: parents, tokens, ended hypotheses. Afterwards a `Scan` from the last step to the first
traces the K best outputs back, so no step copies what was written before it.

The first step has K hypotheses like all others, but only the first of them has a score.

Axes: B items, S positions, K hypotheses, T steps, W tokens of the vocabulary.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...data import BEGIN, END
from ...data.vocabularies._vocabulary import PADDING, UNKNOWN
from ._decoding_steps import DecoderGraph
from ._graph import (
    BOOL,
    FLOAT,
    INT64,
    Graph,
    Value,
    axes,
    op,
    ops,
    places,
    size,
    squeeze,
    unsqueeze,
)
from ._memory import MemoryGraph

_NEVER = float("-inf")


class Settings(NamedTuple):
    """The inputs that control a search."""

    limits: Value  # (B), with the end token
    beam_size: Value  # (1)
    length_penalty: Value  # (1)


class _Journal(NamedTuple):
    """What each step writes: `(T, B, K)`, and weights `(T, B, K, S)`."""

    parents: Value
    tokens: Value
    log_probs: Value
    ended: Value  # scores of the hypotheses, as they were before the step, that end in it
    end_log_probs: Value
    weights: Value | None = None


def search_settings(graph: Graph) -> Settings:
    """Declare the inputs that control a search."""
    return Settings(
        graph.input("limits", INT64, ["B"]),
        graph.input("beam_size", INT64, [1]),
        graph.input("length_penalty", FLOAT, [1]),
    )


def emit_search(
    graph: Graph, decoder: DecoderGraph, memory: MemoryGraph, settings: Settings
) -> None:
    """Search with a decoder, and declare the outputs of the graph.

    Args:
        graph: The outermost graph.
        decoder: Decoder of the model.
        memory: Encoded sources.
        settings: Inputs of the search.
    """
    journal = _loop(graph, decoder, memory, settings)
    number, last = op("Shape", journal.ended, start=0, end=1), settings.beam_size
    # (T, B, K) -> (B, T * K)
    flat = op("Reshape", op("Transpose", journal.ended, perm=[1, 0, 2]), axes(0, -1))
    flat = op("Reshape", flat, op("Concat", size(journal.ended, 1), axes(-1), axis=0))
    scores, which = ops("TopK", flat, last, outputs=2, axis=1)
    ends, hypotheses = op("Div", which, last), op("Mod", which, last)
    outputs, log_probs, weights = _traced(graph, journal, ends, hypotheses, number)
    exists = op("Greater", scores, _NEVER)
    totals = op("ReduceSum", log_probs, axes(2), keepdims=0)
    graph.output("outputs", outputs, INT64, ["B", "K", "T"])
    graph.output("scores", scores, FLOAT, ["B", "K"])
    graph.output("totals", op("Where", exists, totals, _NEVER), FLOAT, ["B", "K"])
    graph.output("log_probs", log_probs, FLOAT, ["B", "K", "T"])
    if weights is not None:
        graph.output("weights", weights, FLOAT, ["B", "T", "S"])


def _divisor(length: Value, alpha: Value) -> Value:
    """Return ((5 + length) / 6) ** alpha (Wu et al. 2016, eq. 14)."""
    return op("Pow", (length + 5.0) / 6.0, alpha)


def _loop(graph: Graph, decoder: DecoderGraph, memory: MemoryGraph, settings: Settings) -> _Journal:
    """Run the steps of the search."""
    limits, beam_size = settings.limits, settings.beam_size
    kept, first = decoder.start(memory)
    items = op("Shape", limits)
    shape = op("Concat", items, beam_size, axis=0)
    rows = unsqueeze(places(limits, 0), 1)  # (B, 1)
    is_first = op("Equal", op("Range", 0, squeeze(beam_size, 0), 1), 0)
    carried = {
        **{name: (value, FLOAT) for name, value in first.items()},
        "rows": (op("Expand", rows, shape), INT64),  # of the state that each hypothesis continues
        "last": (op("Expand", BEGIN, shape), INT64),
        "scores": (op("Expand", op("Where", is_first, 0.0, _NEVER), shape), FLOAT),
        "pool": (op("Expand", _NEVER, shape), FLOAT),  # the best scores of ended hypotheses
        "done": (op("Expand", np.array([False]), items), BOOL),
    }
    body = Graph("step", graph)
    number, _ = body.input("number", INT64, []), body.input("going", BOOL, [])
    was = {name: body.input(name, dtype, None) for name, (_, dtype) in carried.items()}
    state = {name: op("Gather", was[name], was["rows"]) for name in first}
    stepped = decoder.step(kept, state, was["last"], number)
    after, written = _continued(decoder, settings, was, stepped.log_probs, number, rows)
    after |= {name: _as_rows(stepped.state[name]) for name in first}
    going = op("Cast", op("ReduceMin", op("Cast", after["done"], to=INT64), keepdims=0), to=BOOL)
    body.output("going_on", op("Not", going), BOOL, [])
    for name, (_, dtype) in carried.items():
        body.output(f"{name}_next", after[name], dtype, None)
    if stepped.weights is not None:
        written["weights"] = (stepped.weights, FLOAT)
    for name, (value, dtype) in written.items():
        body.output(name, value, dtype, None)
    most = op("ReduceMax", limits, keepdims=0)
    found = ops(
        "Loop",
        most,
        np.array(True),
        *(value for value, _ in carried.values()),
        outputs=len(carried) + len(written),
        body=body.proto(),
    )
    journal = dict(zip(written, found[len(carried) :], strict=True))
    return _Journal(**journal)


def _continued(
    decoder: DecoderGraph,
    settings: Settings,
    was: Mapping[str, Value],
    log_probs: Value,
    number: Value,
    rows: Value,
) -> tuple[dict[str, Value], dict[str, tuple[Value, int]]]:
    """Continue every hypothesis by its best tokens, and end those that can; return the next values and the journal."""
    beam_size, num_tokens, now = settings.beam_size, decoder.num_tokens, number + 1
    forbidden = np.zeros(num_tokens, np.float32)
    forbidden[[PADDING, UNKNOWN, BEGIN, END]] = -np.inf
    end_log_probs = squeeze(op("Slice", log_probs, axes(END), axes(END + 1), axes(2)), 2)
    ending = end_log_probs + was["scores"]  # (B, K)
    at_limit = op("LessOrEqual", settings.limits, now)
    must_end = op("Where", unsqueeze(at_limit, 1, 2), _NEVER, forbidden)
    continued = op("Flatten", log_probs + unsqueeze(was["scores"], 2) + must_end, axis=1)
    scores, chosen = ops("TopK", continued, beam_size, outputs=2, axis=1)
    worst = op("ReduceMin", scores, axes(1), keepdims=1)
    no_end = op("Or", op("Less", ending, worst), unsqueeze(was["done"], 1))
    length = op("Cast", now, to=FLOAT)
    ended = op("Where", no_end, _NEVER, ending / _divisor(length, settings.length_penalty))
    pool, _ = ops("TopK", op("Concat", was["pool"], ended, axis=1), beam_size, outputs=2, axis=1)
    parents, tokens = op("Div", chosen, num_tokens), op("Mod", chosen, num_tokens)
    token_log_probs = op("GatherElements", op("Flatten", log_probs, axis=1), chosen, axis=1)
    bound = _divisor(op("Cast", settings.limits, to=FLOAT), settings.length_penalty)
    best = op("ReduceMax", scores, axes(1), keepdims=0) / bound
    is_beaten = op("GreaterOrEqual", op("ReduceMin", pool, axes(1), keepdims=0), best)
    after = {
        "rows": rows * beam_size + parents,
        "last": tokens,
        "scores": scores,
        "pool": pool,
        "done": op("Or", op("Or", was["done"], is_beaten), at_limit),
    }
    written: dict[str, tuple[Value, int]] = {
        "parents": (parents, INT64),
        "tokens": (tokens, INT64),
        "log_probs": (token_log_probs, FLOAT),
        "ended": (ended, FLOAT),
        "end_log_probs": (end_log_probs, FLOAT),
    }
    return after, written


def _as_rows(state: Value) -> Value:
    """Return the state `(B * K, ...)` of hypotheses `(B, K, ...)`."""
    return op("Reshape", state, op("Concat", axes(-1), op("Shape", state, start=2), axis=0))


def _traced(
    graph: Graph, journal: _Journal, ends: Value, hypotheses: Value, number: Value
) -> tuple[Value, Value, Value | None]:
    """Trace outputs back: hypothesis `hypotheses[b, k]` before step `ends[b, k]` ended in this step.

    Returns:
        Tokens and their log-probabilities `(B, K, T)`, the end token included, and the weights `(B, T, S)` of the best.
    """
    body = Graph("trace", graph)
    now_at = body.input("at", INT64, ["B", "K"])
    step = body.input("step", INT64, [])
    parts = {
        name: body.input(name, FLOAT if "log" in name else INT64, ["B", "K"])
        for name in ("parents", "tokens", "log_probs", "end_log_probs")
    }
    has_weights = journal.weights is not None
    weights = body.input("weights", FLOAT, ["B", "K", "S"]) if has_weights else None
    is_end, is_before = op("Equal", ends, step), op("Less", step, ends)
    at = op("Where", is_before, now_at, 0)

    def of(name: str, index: Value) -> Value:
        return op("GatherElements", parts[name], index, axis=1)

    before = op("Where", is_end, hypotheses, of("parents", at))
    token = op("Where", is_before, of("tokens", at), END)
    end = op("Where", is_end, of("end_log_probs", hypotheses), 0.0)
    body.output("before", before, INT64, ["B", "K"])
    body.output("token", token, INT64, ["B", "K"])
    body.output("log_prob", op("Where", is_before, of("log_probs", at), end), FLOAT, ["B", "K"])
    if weights is not None:
        best = op("Slice", before, axes(0), axes(1), axes(1))  # (B, 1)
        read = op("GatherND", weights, best, batch_dims=1)  # (B, S)
        written = op("LessOrEqual", step, op("Slice", ends, axes(0), axes(1), axes(1)))
        body.output("read", op("Where", written, read, 0.0), FLOAT, ["B", "S"])
    steps = op("Range", 0, squeeze(number, 0), 1)
    inputs = [steps, journal.parents, journal.tokens, journal.log_probs, journal.end_log_probs]
    inputs += [] if journal.weights is None else [journal.weights]
    found = ops(
        "Scan",
        op("Expand", 0, op("Shape", hypotheses)),
        *inputs,
        outputs=3 if weights is None else 4,
        body=body.proto(),
        num_scan_inputs=len(inputs),
        scan_input_directions=[1] * len(inputs),
        scan_output_directions=[1] * (2 if weights is None else 3),
    )
    tokens, log_probs = (op("Transpose", part, perm=[1, 2, 0]) for part in found[1:3])
    if weights is None:
        return tokens, log_probs, None
    return tokens, log_probs, op("Transpose", found[3], perm=[1, 0, 2])
