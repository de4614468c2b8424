"""The outside pass and the tangent pass of a linear chain, in Triton: linear recursions over positions.

    outside   m[t-1, i]  = sum_j q[t, i, j] m[t, j]
    past      E[ G up to t | y_t = j ]   = g[t, j] + sum_i p[t, i, j] (past[t-1, i] + g[t, i, j]) / sum_i p[t, i, j]
    future    E[ G from t on | y_t = i ] = g[t, i] + sum_j p[t+1, i, j] (future[t+1, j] + g[t+1, i, j]) / sum_j p[t+1, i, j]

G is the sum of the direction g over a labeling, and p are the pair marginals. Each part of g is taken less
its mean, so no number grows with T. `sweep` runs all three recursions, and computes only the part of a
step that waits for the previous step. The other kernels compute all positions at once: a row is a
position of an item, row = item * T + t.

Axes: B batch, T positions, K states, C chunks (see `_chain_kernels`).
"""

import triton
import triton.language as tl

from ._chain_kernels import links
from ._numbers import inverse_or_zero


@triton.jit
def sweep(
    tables, flags, scales, terms, first, out, ends,
    rows, length, chunks, steps,
    BACK: tl.constexpr, STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr,
    MASKED: tl.constexpr, SCALE: tl.constexpr, TERM: tl.constexpr, FIRST: tl.constexpr,
    WRITE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Compute x[t] = tables x[t -/+ 1], times `scales` (B, T, K), plus `terms` (B, T, K).

    Forward, a step sums over the first axis of a table, BACK over the second; a step that joins no
    positions copies x. The value before the first step is `first`, the term of the position ("term"), 0
    ("zero") or a unit vector ("units"). With WRITE, write x to `out` (B, T, K), except the values before
    the first step of a chunk; otherwise write the last value of each row to `ends`.
    """
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    state = tl.arange(0, PADDED)
    exists, known = row < rows, state < STATES
    chunk = row // STATES if FIRST == "units" else row
    item, before = chunk // chunks, (chunk % chunks * steps).to(tl.int32)
    at_node = item[:, None] * length * STATES + state[None, :]
    at_edge = (item[:, None, None] * (length - 1) * (STATES * STATES) + state[None, :, None] * STATES
               + state[None, None, :])  # fmt: skip
    on_node = exists[:, None] & known[None, :]
    on_edge = on_node[:, :, None] & known[None, None, :]
    copy = tl.where(state[:, None] == state[None, :], 1.0, 0.0)[None, :, :]
    start = length - 1 if BACK else 0
    at_row = row[:, None] * STATES + state[None, :]
    if FIRST == "term":
        value = tl.load(terms + at_node + start * STATES, mask=on_node, other=0.0)
    elif FIRST == "given":
        value = tl.load(first + at_row, mask=on_node, other=0.0)
    elif FIRST == "units":
        value = tl.where(state[None, :] == (row % STATES)[:, None], 1.0, 0.0).to(
            out.dtype.element_ty
        )
    else:
        value = tl.zeros((BLOCK, PADDED), out.dtype.element_ty)
    if WRITE:
        tl.store(out + at_node + start * STATES, value, mask=on_node & (before == 0)[:, None])
    for step in tl.range(1, steps + 1, num_stages=STAGES):
        done = before + step  # steps from the end where the sweep begins
        there = exists & (done < length)
        into = (length - done if BACK else done).to(tl.int64)  # the step from into - 1 to into
        here = ((into - 1 if BACK else into) * STATES)[:, None]
        on_here = on_node & there[:, None]
        table = tl.load(tables + at_edge + ((into - 1) * STATES * STATES)[:, None, None],
                        mask=on_edge & there[:, None, None], other=0.0)  # fmt: skip
        if MASKED:
            _, linked = links(flags, item, into, length, there, MASKED)
            table = tl.where(linked[:, None, None], table, copy)
        if BACK:
            found = tl.sum(table * value[:, None, :], 2)
        else:
            found = tl.sum(table * value[:, :, None], 1)
        if SCALE:
            found = found * tl.load(scales + at_node + here, mask=on_here, other=0.0)
        if TERM:
            found = found + tl.load(terms + at_node + here, mask=on_here, other=0.0)
        value = tl.where(there[:, None], found, value)  # the last chunk may be shorter
        if WRITE:
            tl.store(out + at_node + here, value, mask=on_here)
    if not WRITE:
        tl.store(ends + at_row, value, mask=on_node)


@triton.jit
def places(rows, length, STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    """Return the rows of a program, their positions, and the offsets of nodes and of edges into them."""
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    item, t = row // length, row % length
    state = tl.arange(0, PADDED)
    known = state < STATES
    at = row[:, None] * STATES + state[None, :]
    on = (row < rows)[:, None] & known[None, :]
    at_edge = ((row - item - 1) * STATES * STATES)[:, None, None] + (
        state[None, :, None] * STATES + state[None, None, :]
    )
    on_edge = (on & (t > 0)[:, None])[:, :, None] & known[None, None, :]
    return row, t, at, on, at_edge, on_edge


@triton.jit
def marginals_join(
    conditionals, masses, flags, nodes, pairs,
    rows, length,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write node marginals with a total of 1, without the drift of the sweep, and pair marginals."""
    row, _, at, on, at_edge, on_edge = places(rows, length, STATES, PADDED, BLOCK)
    real, linked = links(flags, row * 0, row, length, row < rows, MASKED)
    mass = tl.load(masses + at, mask=on, other=0.0)
    mass = mass * inverse_or_zero(tl.sum(mass, 1))[:, None]
    tl.store(nodes + at, tl.where(real[:, None], mass, 0.0), mask=on)
    both = tl.load(conditionals + at_edge, mask=on_edge, other=0.0) * mass[:, None, :]
    tl.store(pairs + at_edge, tl.where(linked[:, None, None], both, 0.0), mask=on_edge)


@triton.jit
def centered(direction, nodes, at, on):
    """Return a direction on the nodes of a position less its mean."""
    along = tl.load(direction + at, mask=on, other=0.0)
    mass = tl.load(nodes + at, mask=on, other=0.0)
    return tl.where(on, along - tl.sum(mass * along, 1)[:, None], 0.0)


@triton.jit
def total_of(table):
    """Sum (BLOCK, K, K) over both states, as (BLOCK, 1, 1)."""
    return tl.sum(tl.sum(table, 2), 1)[:, None, None]


@triton.jit
def tangent_prepare(
    nodes, pairs, flags, on_nodes, on_pairs, scales, terms,
    rows, length,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr,
    NODES: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Write the factors and terms of both sweeps of a tangent (2, B, T, K): forward into t, and back
    into t - 1; the row of position 0 writes those of the last position for the sweep back.
    """
    row, t, at, on, at_edge, on_edge = places(rows, length, STATES, PADDED, BLOCK)
    other = tl.where(t > 0, row - 1, row + length - 1)
    real, linked = links(flags, row * 0, row, length, row < rows, MASKED)
    far, _ = links(flags, row * 0, other, length, row < rows, MASKED)
    linked = linked & (t > 0)
    back = at + ((other - row) * STATES)[:, None]
    on_edge = on_edge & linked[:, None, None]
    both = tl.load(pairs + at_edge, mask=on_edge, other=0.0)
    past_scale = tl.where(linked[:, None], inverse_or_zero(tl.sum(both, 1)), 1.0)
    future_scale = tl.where(linked[:, None], inverse_or_zero(tl.sum(both, 2)), 1.0)
    past_term = tl.zeros_like(past_scale)
    future_term = tl.zeros_like(future_scale)
    if PAIRS:
        gains = tl.load(on_pairs + at_edge, mask=on_edge, other=0.0)
        gains = both * (gains - total_of(both * gains))
        past_term = tl.sum(gains, 1) * past_scale
        future_term = tl.sum(gains, 2) * future_scale
    if NODES:
        past_term += centered(on_nodes, nodes, at, on & real[:, None])
        future_term += centered(on_nodes, nodes, back, on & far[:, None])
    half = tl.full((1, 1), STATES, tl.int64) * rows
    tl.store(scales + at, past_scale, mask=on)
    tl.store(terms + at, past_term, mask=on)
    tl.store(scales + half + back, future_scale, mask=on)
    tl.store(terms + half + back, future_term, mask=on)


@triton.jit
def tangent_join(
    nodes, pairs, flags, on_nodes, on_pairs, past, future, along_nodes, along_pairs,
    rows, length,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr,
    NODES: tl.constexpr, PAIRS: tl.constexpr, WANT_PAIRS: tl.constexpr,
):  # fmt: skip
    """Write the derivatives of both marginals, less the rounding errors of their means.

    node = m[t, j]    ( past[t, j] + future[t, j] - g[t, j] )
    pair = p[t, i, j] ( past[t-1, i] + g[t, i, j] + future[t, j] )
    """
    row, _, at, on, at_edge, on_edge = places(rows, length, STATES, PADDED, BLOCK)
    real, linked = links(flags, row * 0, row, length, row < rows, MASKED)
    mass = tl.load(nodes + at, mask=on, other=0.0)
    after = tl.load(future + at, mask=on, other=0.0)
    gain = tl.load(past + at, mask=on, other=0.0) + after
    if NODES:
        gain -= tl.load(on_nodes + at, mask=on & real[:, None], other=0.0)
    along = mass * (gain - tl.sum(mass * gain, 1)[:, None])
    tl.store(along_nodes + at, tl.where(real[:, None], along, 0.0), mask=on)
    if WANT_PAIRS:
        both = tl.load(pairs + at_edge, mask=on_edge, other=0.0)
        t = row % length
        before = tl.load(past + at - STATES, mask=on & (t > 0)[:, None], other=0.0)
        gains = before[:, :, None] + after[:, None, :]
        if PAIRS:
            gains += tl.load(on_pairs + at_edge, mask=on_edge & linked[:, None, None], other=0.0)
        change = both * (gains - total_of(both * gains))
        tl.store(along_pairs + at_edge, tl.where(linked[:, None, None], change, 0.0), mask=on_edge)
