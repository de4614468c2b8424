"""The inside pass of a semi-Markov model in Triton.

    starts        s[t, k] = log sum_i exp( a[t-1, i] + transitions[t, i, k] ),   s[0] = 0
    ends          a[t, k] = log sum_d exp( s[t-d, k] + segments[t-d, d, k] )
    conditionals  l[t, d, k] = p( length d+1 | a segment of k ends at t+d )
                  q[t, i, k] = p( i before | a segment of k starts at t )

A program computes BLOCK items. It carries the scores of the last end (BLOCK, K) and those of the last D starts,
in a ring (BLOCK, D, K) in registers: slot t % D has the start at t. A step replaces one slot and joins each slot with
the segments from its start to t, which are loaded at addresses that no score determines. So no kernel makes
the tensor of edges from position to position, or reads a number that it has written.

Rows have their real positions first (see `_segment_ops`), and `counts` (B,) has their number. A row keeps its scores
after its last position.

Axes: B batch, T positions, D lengths (a segment of d has d + 1 positions), K labels. K is padded to PADDED and D to
SLOTS, which are powers of two.
References: Sarawagi & Cohen 2004.
"""

import triton
import triton.language as tl

from ._chain_kernels import ended, joined
from ._charts import num_real
from ._numbers import NEVER, add, inverse_or_zero, log, log_sum

# The integer arguments that change with every batch; Triton does not compile a kernel again for them.
SIZES = ["rows", "batch", "length"]


@triton.jit
def lengths_of(t, slot, LENGTHS: tl.constexpr, BACK: tl.constexpr):
    """Return d of the segments that join each slot of the ring and position t: they end at t, or with BACK they
    start at t.
    """
    newest = t % LENGTHS
    if BACK:
        return (slot + (LENGTHS - newest)) % LENGTHS
    else:
        return (newest + 2 * LENGTHS - slot) % LENGTHS


@triton.jit
def edge_places(rows, stride, LABELS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    """Return the items of a program, the offsets of their tables of transitions, and which entries exist."""
    item = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    label = tl.arange(0, PADDED)
    known = label < LABELS
    table = label[None, :, None] * LABELS + label[None, None, :]
    on = (item < rows)[:, None, None] & known[None, :, None] & known[None, None, :]
    return item, item[:, None, None] * stride + table, on


@triton.jit(do_not_specialize=SIZES)
def inside(
    segments, transitions, counts, log_partition, lengths, previous, last,
    rows, length, item_stride, step_stride,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, SHARED: tl.constexpr, KEEP: tl.constexpr,
    FAST: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write log Z (B,) and, with KEEP, both conditionals (B, T, D, K) and (B, T-1, K, K), and the label
    probabilities of the last segment (B, K).
    """
    DTYPE: tl.constexpr = segments.dtype.element_ty
    PAIR: tl.constexpr = segments.dtype.element_ty == tl.float32
    item, at_table, on_edge = edge_places(rows, item_stride, LABELS, PADDED, BLOCK)
    _, at_edge, _ = edge_places(rows, (length - 1) * (LABELS * LABELS), LABELS, PADDED, BLOCK)
    label, slot = tl.arange(0, PADDED), tl.arange(0, SLOTS)
    exists, known = item < rows, label < LABELS
    count = num_real(counts, item, exists, length, 0, MASKED)
    at_segment = item[:, None, None] * length * (LENGTHS * LABELS) + label[None, None, :]
    on_label = exists[:, None, None] & known[None, None, :]

    # A row with no real position has one segmentation, the empty one, not K copies of it.
    lo = tl.zeros((BLOCK, PADDED), DTYPE)
    hi = lo + tl.where(label == 0, 0.0, NEVER)[None, :]
    ring_lo = tl.zeros((BLOCK, SLOTS, PADDED), DTYPE)
    ring = ring_lo + NEVER
    edges = tl.load(transitions + at_table, mask=on_edge, other=0.0) if SHARED else ring
    for t in tl.range(0, length, num_stages=STAGES):
        there = exists & (t < count)
        d = lengths_of(t, slot, LENGTHS, False)
        fits = (slot < LENGTHS) & (d <= t)
        on_step = on_edge & (there & (t > 0))[:, None, None]
        on = on_label & there[:, None, None] & fits[None, :, None]
        place = at_segment + (((t - d) * LENGTHS + d) * LABELS)[None, :, None]
        own = tl.load(segments + place, mask=on, other=0.0)
        if SHARED:
            edge = edges
        else:
            edge = tl.load(transitions + at_table + (t - 1) * step_stride, mask=on_step, other=0.0)
        weights, total, shift = joined(hi, lo, edge, tl.zeros_like(edge), PAIR)
        if KEEP:
            share = weights * inverse_or_zero(total)[:, None, :]
            tl.store(previous + at_edge + (t - 1) * (LABELS * LABELS), share, mask=on_step)
        start, start_lo = add(tl.reshape(shift, (BLOCK, PADDED)), log(total, FAST), PAIR)
        start, start_lo = tl.where(t == 0, 0.0, start), tl.where(t == 0, 0.0, start_lo)
        newest = (slot == t % LENGTHS)[None, :, None]
        ring = tl.where(newest, start[:, None, :], ring)
        ring_lo = tl.where(newest, start_lo[:, None, :], ring_lo)
        score, lost = add(ring, tl.where(on, own, NEVER), PAIR)
        weights, total, shift = log_sum(score, lost + ring_lo, 1)
        if KEEP:
            tl.store(lengths + place, weights * inverse_or_zero(total)[:, None, :], mask=on)
        end, end_lo = add(tl.reshape(shift, (BLOCK, PADDED)), log(total, FAST), PAIR)
        hi, lo = tl.where(there[:, None], end, hi), tl.where(there[:, None], end_lo, lo)
    found, share = ended(hi, lo, BLOCK, FAST, PAIR)
    tl.store(log_partition + item, found, mask=exists)
    if KEEP:
        at = item[:, None] * LABELS + label[None, :]
        tl.store(last + at, share, mask=exists[:, None] & known[None, :])
