"""The outside pass of a semi-Markov model in Triton, and the linear recursions of its tangent pass.

    outside   end[t-1, i] = sum_k q[t, i, k] start[t, k],   start[t, k] = sum_d l[t, d, k] end[t+d, k]
    segments  m[t, d, k] = l[t, d, k] end[t+d, k]
    pairs     p[t, i, k] = q[t, i, k] start[t, k]

`sweep` runs the recursions of both passes, with the last D vectors in a ring, as `_segment_kernels.inside`. The
other kernels compute all positions at once: a row is a position of an item, row = item * T + t.

Every position is covered by one segment, but the rounding errors of a sweep grow with every step. `weigh` therefore
sums the segments that cover each position, and `join` and `join_pairs` divide by the sum.

Axes: B batch, T positions, D lengths, K labels.
"""

import triton
import triton.language as tl

from ._charts import num_real
from ._numbers import inverse_or_zero
from ._segment_kernels import SIZES, edge_places, lengths_of


@triton.jit(do_not_specialize=SIZES)
def sweep(
    segments, steps, counts, first, scales, terms, starts, ends,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, BACK: tl.constexpr, SCALED: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Write the numbers x of all starts and all ends (B, T, K).

    Forward, the start at t is `steps` (B, T-1, K, K) times the end at t - 1, and the end at t is the sum of `segments`
    (B, T, D, K) times the starts of its segments; BACK exchanges starts and ends. With SCALED, each number is then
    multiplied by `scales` and increased by `terms` (2, B, T, K), of starts and of ends. The last end of a row is
    `first` (B, K), or 0 with SCALED.
    """
    DTYPE: tl.constexpr = starts.dtype.element_ty
    item, at_edge, on_edge = edge_places(
        rows, (length - 1) * (LABELS * LABELS), LABELS, PADDED, BLOCK
    )
    label, slot = tl.arange(0, PADDED), tl.arange(0, SLOTS)
    exists, known = item < rows, label < LABELS
    count = num_real(counts, item, exists, length, 0, MASKED)
    on_node = exists[:, None] & known[None, :]
    at_node = item[:, None] * length * LABELS + label[None, :]
    at_segment = item[:, None, None] * length * (LENGTHS * LABELS) + label[None, None, :]
    of_ends = tl.full((1, 1), LABELS, tl.int64) * rows * length
    ring = tl.zeros((BLOCK, SLOTS, PADDED), DTYPE)
    value = tl.zeros((BLOCK, PADDED), DTYPE)
    if not SCALED:
        value = tl.load(first + item[:, None] * LABELS + label[None, :], mask=on_node, other=0.0)
    for step in tl.range(0, length, num_stages=STAGES):
        t = length - 1 - step if BACK else step
        there = exists & (t < count)
        d = lengths_of(t, slot, LENGTHS, BACK)
        reached = t + d[None, :] < count[:, None] if BACK else (d <= t)[None, :] & there[:, None]
        on = (reached & (slot < LENGTHS)[None, :])[:, :, None] & on_node[:, None, :]
        begin = t + 0 * d if BACK else t - d
        weight = tl.load(segments + at_segment + ((begin * LENGTHS + d) * LABELS)[None, :, None],
                         mask=on, other=0.0)  # fmt: skip
        table = tl.load(steps + at_edge + (t - 1) * (LABELS * LABELS),
                        mask=on_edge & (there & (t > 0))[:, None, None], other=0.0)  # fmt: skip
        on_here = on_node & there[:, None]
        here = at_node + t * LABELS
        newest = (slot == t % LENGTHS)[None, :, None]
        if BACK:
            tl.store(ends + here, value, mask=on_here)
            ring = tl.where(newest, value[:, None, :], ring)
            start = tl.sum(weight * ring, 1)
        else:
            start = tl.sum(table * value[:, :, None], 1)
        if SCALED:
            start = start * tl.load(scales + here, mask=on_here, other=0.0)
            start = start + tl.load(terms + here, mask=on_here, other=0.0)
        tl.store(starts + here, start, mask=on_here)
        if BACK:
            on_end, at_end = on_here & (t > 0), here - LABELS
            end = tl.sum(table * start[:, None, :], 2)
        else:
            on_end, at_end = on_here, here
            ring = tl.where(newest, start[:, None, :], ring)
            end = tl.sum(weight * ring, 1)
        if SCALED:
            end = end * tl.load(scales + of_ends + at_end, mask=on_end, other=0.0)
            end = end + tl.load(terms + of_ends + at_end, mask=on_end, other=0.0)
        value = tl.where(there[:, None], end, value)
        if not BACK:
            tl.store(ends + here, value, mask=on_here)


@triton.jit
def rows_of(
    rows, length, counts, LABELS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr
):  # fmt: skip
    """Return the rows of a program, their positions, the number of positions of their items, and the offsets of
    labels (BLOCK, K) and of pairs of labels (BLOCK, K, K), each with the entries that exist.
    """
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    item, t = row // length, (row % length).to(tl.int32)
    label = tl.arange(0, PADDED)
    known = label < LABELS
    count = num_real(counts, item, row < rows, length, 0, MASKED)
    at = row[:, None] * LABELS + label[None, :]
    on = (row < rows)[:, None] & known[None, :]
    at_edge = ((row - item - 1) * (LABELS * LABELS))[:, None, None] + (
        label[None, :, None] * LABELS + label[None, None, :]
    )
    on_edge = (on & (t > 0)[:, None])[:, :, None] & known[None, None, :]
    return row, t, count, at, on, at_edge, on_edge


@triton.jit
def segments_of(row, on, d, LENGTHS: tl.constexpr, LABELS: tl.constexpr, PADDED: tl.constexpr):
    """Return the offsets (BLOCK, D, K) of the segments of rows, and which exist."""
    label = tl.arange(0, PADDED)
    at = ((row[:, None] * LENGTHS + d) * LABELS)[:, :, None] + label[None, None, :]
    return at, on[:, None, :] & (d < LENGTHS)[:, :, None]


@triton.jit
def store_covers(covers, mass, row, on, d, LENGTHS: tl.constexpr):
    """Store how much the segments (BLOCK, D, K) of each start contribute to the sums of later positions: those
    longer than d to the position d after their start, at [t + d, d] of `covers` (B, T, D).
    """
    longer = tl.cumsum(tl.sum(mass, 2), 1, reverse=True)
    tl.store(covers + (row[:, None] + d) * LENGTHS + d, longer, mask=on)


@triton.jit
def cover_of(covers, row, t, on, d, LENGTHS: tl.constexpr):
    """Return the sum over the segments that cover each row."""
    on = on[:, None] & (d <= t[:, None]) & (d < LENGTHS)
    return tl.sum(tl.load(covers + row[:, None] * LENGTHS + d, mask=on, other=0.0), 1)


@triton.jit(do_not_specialize=SIZES)
def weigh(
    lengths, counts, ends, covers,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the contributions to the sums of probabilities over each position."""
    row, t, count, at, on, _, _ = rows_of(rows, length, counts, LABELS, PADDED, BLOCK, MASKED)
    d = tl.arange(0, SLOTS)[None, :]
    here, on = segments_of(row, on, d, LENGTHS, LABELS, PADDED)
    reached = t[:, None] + d < count[:, None]
    on = on & reached[:, :, None]
    share = tl.load(lengths + here, mask=on, other=0.0)
    end = tl.load(ends + at[:, None, :] + (d * LABELS)[:, :, None], mask=on, other=0.0)
    within = reached & (d < LENGTHS) & (row < rows)[:, None]
    store_covers(covers, share * end, row, within, d, LENGTHS)


@triton.jit(do_not_specialize=SIZES)
def join(
    lengths, counts, ends, covers, segments,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the probabilities of segments, divided by the sum over the segments that cover their first position,
    except those of segments that reach beyond the last real position.
    """
    row, t, count, at, on, _, _ = rows_of(rows, length, counts, LABELS, PADDED, BLOCK, MASKED)
    d = tl.arange(0, SLOTS)[None, :]
    scale = inverse_or_zero(cover_of(covers, row, t, (row < rows) & (t < count), d, LENGTHS))
    here, on = segments_of(row, on, d, LENGTHS, LABELS, PADDED)
    on = on & (t[:, None] + d < count[:, None])[:, :, None]
    share = tl.load(lengths + here, mask=on, other=0.0)
    end = tl.load(ends + at[:, None, :] + (d * LABELS)[:, :, None], mask=on, other=0.0)
    tl.store(segments + here, share * end * scale[:, None, None], mask=on)


@triton.jit(do_not_specialize=SIZES)
def join_pairs(
    previous, counts, starts, covers, pairs,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the probabilities of pairs of labels, as `join`. Both in one kernel need too many registers on AMD."""
    row, t, count, at, on, at_edge, on_edge = rows_of(
        rows, length, counts, LABELS, PADDED, BLOCK, MASKED
    )
    there = (row < rows) & (t < count)
    d = tl.arange(0, SLOTS)[None, :]
    scale = inverse_or_zero(cover_of(covers, row, t, there, d, LENGTHS))
    start = tl.load(starts + at, mask=on & there[:, None], other=0.0) * scale[:, None]
    on_edge = on_edge & there[:, None, None]
    both = tl.load(previous + at_edge, mask=on_edge, other=0.0)
    tl.store(pairs + at_edge, both * start[:, None, :], mask=on_edge)
