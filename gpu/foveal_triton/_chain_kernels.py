"""The inside pass, the best labeling and the samples of a linear chain, in Triton.

    inside        a[t, j]    = log sum_i exp( a[t-1, i] + transitions[t, i, j] ) + unary[t, j]
    conditionals  q[t, i, j] = p( y_{t-1} = i | y_t = j )

A program computes BLOCK items; a step is a tile (BLOCK, previous, next), whose states are padded to a
power of two. Only the state vector is carried from step to step. All loads are independent of it, and
run STAGES steps ahead. A kernel never reads a number that it has written: Triton does not order a store
before a later load of another thread.

A step that joins no positions (see `flags_of`) has the edges of the identity, which copies the
state. Its scores, and those of a padded position, are loaded and never selected.

A long chain of few states is split into chunks, which are computed at once. First, each chunk starts in
each of the K states (FIRST = "units"), which gives its total score from state to state. `scan` joins the
chunks; then each chunk starts again, from the scores before it (FIRST = "given").

Axes: B batch, T positions, K states, S samples, C chunks.
References: Rabiner 1989; Rush 2020 (parallel scans).
"""

import triton
import triton.language as tl

from ._numbers import NEVER, add, inverse_or_zero, log, log_sum


@triton.jit
def links(flags, item, t, length, exists, MASKED: tl.constexpr):
    """Return whether t is a real position, and whether the step into t joins two real positions."""
    if MASKED:
        flag = tl.load(flags + item * length + t, mask=exists, other=0)
    else:
        flag = tl.where(exists, 3, 0)
    return (flag & 1) != 0, (flag & 2) != 0


@triton.jit
def first_scores(
    unary, flags, start_hi, start_lo, row, item, state, length, exists,
    STATES: tl.constexpr, MASKED: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """Return the scores before the first step, as hi and lo (BLOCK, PADDED)."""
    known = state < STATES
    on_node = exists[:, None] & known[None, :]
    never = tl.where(known, 0.0, NEVER)[None, :]
    if FIRST == "units":
        hi = tl.where(state[None, :] == (row % STATES)[:, None], 0.0, NEVER)
        lo = tl.zeros_like(hi)
    elif FIRST == "given":
        at = row[:, None] * STATES + state[None, :]
        hi = tl.load(start_hi + at, mask=on_node, other=NEVER)
        lo = tl.load(start_lo + at, mask=on_node, other=0.0)
    else:
        real, _ = links(flags, item, 0, length, exists, MASKED)
        at = item[:, None] * length * STATES + state[None, :]
        hi = tl.where(real[:, None], tl.load(unary + at, mask=on_node, other=NEVER), never)
        if MASKED:
            # A row with no real position has one labeling, the empty one, not K copies of it.
            any_real = (tl.load(flags + item * length, mask=exists, other=4) & 4) != 0
            hi = tl.where((any_real[:, None]) | (state == 0)[None, :], hi, NEVER)
        lo = tl.zeros_like(hi)
    return hi, lo


@triton.jit
def joined(hi, lo, edge, rest, PAIR: tl.constexpr):
    """Return the weights (BLOCK, previous, next) of scores joined by edges, edge + rest, their sums over
    the previous states and their shifts.
    """
    score, lost = add(hi[:, :, None], edge, PAIR)
    return log_sum(score, lost + (lo[:, :, None] + rest), 1)


@triton.jit
def ended(hi, lo, BLOCK: tl.constexpr, FAST: tl.constexpr, PAIR: tl.constexpr):
    """Return log Z (BLOCK,) and the marginals of the last position, from its scores."""
    weights, total, shift = log_sum(hi, lo, 1)
    found, lost = add(tl.reshape(shift, (BLOCK,)), log(total, FAST), PAIR)
    return found + lost, weights * inverse_or_zero(total)[:, None]


@triton.jit
def inside(
    unary, transitions, flags, start_hi, start_lo, end_hi, end_lo, log_partition, conditionals, last,
    rows, length, item_stride, step_stride, chunks, steps,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr,
    SHARED: tl.constexpr, KEEP: tl.constexpr, FIRST: tl.constexpr, FAST: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Write log Z (B,) and, with KEEP, conditionals (B, T-1, K, K) and the marginals of the last position.

    A row is an item, for FIRST = "given" a chunk of an item, for "units" also a first state. Rows with
    many chunks write their last scores (rows, K) instead of log Z.
    """
    PAIR: tl.constexpr = unary.dtype.element_ty == tl.float32
    WHOLE: tl.constexpr = FIRST == "unary"
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    state = tl.arange(0, PADDED)
    exists, known = row < rows, state < STATES
    chunk = row // STATES if FIRST == "units" else row
    item = row if WHOLE else chunk // chunks
    before = row * 0 if WHOLE else chunk % chunks * steps  # steps before the chunk
    table = state[None, :, None] * STATES + state[None, None, :]
    at_node = item[:, None] * length * STATES + state[None, :]
    at_table = item[:, None, None] * item_stride + table
    at_edge = item[:, None, None] * (length - 1) * (STATES * STATES) + table
    on_node = exists[:, None] & known[None, :]
    on_edge = on_node[:, :, None] & known[None, None, :]
    copy = tl.where(state[:, None] == state[None, :], 0.0, NEVER)[None, :, :]

    hi, lo = first_scores(unary, flags, start_hi, start_lo, row, item, state, length, exists,
                          STATES, MASKED, FIRST)  # fmt: skip
    edges = tl.load(transitions + at_table, mask=on_edge, other=0.0) if SHARED else copy
    for step in tl.range(1, steps + 1, num_stages=STAGES):
        t = before + step
        there = exists if WHOLE else exists & (t < length)
        real, linked = links(flags, item, t, length, there, MASKED)
        own = tl.load(unary + at_node + (t * STATES)[:, None],
                      mask=on_node & there[:, None], other=0.0)  # fmt: skip
        if SHARED:
            edge = edges
        else:
            edge = tl.load(transitions + at_table + ((t - 1) * step_stride)[:, None, None],
                           mask=on_edge & there[:, None, None], other=0.0)  # fmt: skip
        if MASKED or not WHOLE:
            own = tl.where(real[:, None], own, 0.0)
            edge = tl.where(linked[:, None, None], edge, copy)
        own = tl.where(known[None, :], own, NEVER)
        weights, total, shift = joined(hi, lo, edge, tl.zeros_like(edge), PAIR)
        if KEEP:
            share = weights * inverse_or_zero(total)[:, None, :]
            tl.store(conditionals + at_edge + ((t - 1) * STATES * STATES)[:, None, None], share,
                     mask=on_edge & there[:, None, None])  # fmt: skip
        # First add the numbers that do not wait for the logarithm.
        hi, first = add(tl.reshape(shift, (BLOCK, PADDED)), own, PAIR)
        hi, second = add(hi, log(total, FAST), PAIR)
        lo = first + second
    if FIRST == "units":
        at = row[:, None] * STATES + state[None, :]
        tl.store(end_hi + at, hi, mask=on_node)
        tl.store(end_lo + at, lo, mask=on_node)
    if WHOLE:
        found, share = ended(hi, lo, BLOCK, FAST, PAIR)
        tl.store(log_partition + item, found, mask=exists)
        if KEEP:
            tl.store(last + item[:, None] * STATES + state[None, :], share, mask=on_node)


@triton.jit
def scan(
    unary, flags, totals_hi, totals_lo, starts_hi, starts_lo, log_partition, last,
    length, chunks,
    STATES: tl.constexpr, PADDED: tl.constexpr, MASKED: tl.constexpr, FAST: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Join the chunks of an item, whose total scores are (B, C, K, K): write the scores before each
    chunk (B, C, K), log Z and the marginals of the last position.
    """
    PAIR: tl.constexpr = unary.dtype.element_ty == tl.float32
    item = (tl.program_id(0) + tl.arange(0, 1)).to(tl.int64)
    state = tl.arange(0, PADDED)
    exists = item >= 0
    known = (state < STATES)[None, :]
    at_state = item[:, None] * chunks * STATES + state[None, :]
    at_edge = (item[:, None, None] * chunks * STATES * STATES + state[None, :, None] * STATES
               + state[None, None, :])  # fmt: skip
    on_edge = known[:, :, None] & known[:, None, :]
    hi, lo = first_scores(unary, flags, unary, unary, item, item, state, length, exists,
                          STATES, MASKED, "unary")  # fmt: skip
    for chunk in tl.range(0, chunks, num_stages=STAGES):
        edge = tl.load(totals_hi + at_edge + chunk * STATES * STATES, mask=on_edge, other=0.0)
        rest = tl.load(totals_lo + at_edge + chunk * STATES * STATES, mask=on_edge, other=0.0)
        tl.store(starts_hi + at_state + chunk * STATES, hi, mask=known)
        tl.store(starts_lo + at_state + chunk * STATES, lo, mask=known)
        edge = tl.where(known[:, None, :], edge, NEVER)
        _, total, shift = joined(hi, lo, edge, rest, PAIR)
        hi, lo = add(tl.reshape(shift, (1, PADDED)), log(total, FAST), PAIR)
    found, share = ended(hi, lo, 1, FAST, PAIR)
    tl.store(log_partition + item, found)
    tl.store(last + item[:, None] * STATES + state[None, :], share, mask=known)


@triton.jit
def best(
    unary, transitions, flags, scores, pointers,
    batch, length, item_stride, step_stride,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Write the best score (B,), and pointers (B, T, K): the state at t given the state at t + 1."""
    item = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    state = tl.arange(0, PADDED)
    exists, known = item < batch, state < STATES
    at_node = item[:, None] * length * STATES + state[None, :]
    at_table = (item[:, None, None] * item_stride + state[None, :, None] * STATES
                + state[None, None, :])  # fmt: skip
    on_node = exists[:, None] & known[None, :]
    on_edge = on_node[:, :, None] & known[None, None, :]
    copy = tl.where(state[:, None] == state[None, :], 0.0, NEVER)[None, :, :]
    score, _ = first_scores(unary, flags, unary, unary, item, item, state, length, exists,
                            STATES, MASKED, "unary")  # fmt: skip
    score = score.to(tl.float64)
    for t in tl.range(1, length, num_stages=STAGES):
        real, linked = links(flags, item, t, length, exists, MASKED)
        own = tl.load(unary + at_node + t * STATES, mask=on_node, other=0.0)
        edge = tl.load(transitions + at_table + (t - 1) * step_stride, mask=on_edge, other=0.0)
        if MASKED:
            own = tl.where(real[:, None], own, 0.0)
            edge = tl.where(linked[:, None, None], edge, copy)
        own = tl.where(known[None, :], own, NEVER)
        joined = score[:, :, None] + edge.to(tl.float64)
        highest, source = tl.max(joined, 1, return_indices=True, return_indices_tie_break_left=True)
        tl.store(pointers + at_node + (t - 1) * STATES, source, mask=on_node)
        score = highest + own.to(tl.float64)
    highest, source = tl.max(score, 1, return_indices=True, return_indices_tie_break_left=True)
    tl.store(scores + item, highest.to(scores.dtype.element_ty), mask=exists)
    # The last state does not depend on a later one.
    source = tl.broadcast_to(source[:, None], (BLOCK, PADDED))
    tl.store(pointers + at_node + (length - 1) * STATES, source, mask=on_node)


@triton.jit
def draw(
    conditionals, last, uniforms, pointers,
    rows, batch, length,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Draw pointers (S, B, T, K) for every state at t + 1, by the inverse distribution function. A row is
    a position of a sample.
    """
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    item, t = row // length % batch, row % length
    state = tl.arange(0, PADDED)
    exists, inner = row < rows, t < length - 1
    on = exists[:, None] & (state < STATES)[None, :]
    at_edge = ((item * (length - 1) + t) * STATES * STATES)[:, None, None] + (
        state[None, :, None] * STATES + state[None, None, :]
    )
    on_edge = (on & inner[:, None])[:, :, None] & (state < STATES)[None, None, :]
    weights = tl.load(conditionals + at_edge, mask=on_edge, other=0.0)
    ends = tl.load(last + item[:, None] * STATES + state[None, :], mask=on, other=0.0)
    weights = tl.where(inner[:, None, None], weights, ends[:, :, None])
    uniform = tl.load(uniforms + row, mask=exists, other=0.0).to(weights.dtype)
    running = tl.cumsum(weights, 1)
    limit = uniform[:, None] * tl.max(running, 1)
    below = tl.sum((running <= limit[:, None, :]).to(tl.int32), 1)
    # Rounding may lead past the last possible state: then choose that state.
    possible = tl.max(tl.where(weights > 0, state[None, :, None], 0), 1)
    chosen = tl.minimum(below, possible)
    tl.store(pointers + row[:, None] * STATES + state[None, :], chosen, mask=on)


@triton.jit
def follow(
    pointers, labels,
    rows, length,
    STATES: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write y[t] = pointers[t, y[t+1]], from the last position back."""
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    state = tl.arange(0, PADDED)
    exists = row < rows
    at = row[:, None] * length * STATES + state[None, :]
    on = exists[:, None] & (state < STATES)[None, :]
    label = tl.zeros((BLOCK,), tl.int32)
    for step in tl.range(0, length, num_stages=STAGES):
        t = length - 1 - step
        table = tl.load(pointers + at + t * STATES, mask=on, other=0)
        label = tl.sum(tl.where(state[None, :] == label[:, None], table, 0), 1)
        tl.store(labels + row * length + t, label.to(tl.int64), mask=exists)
