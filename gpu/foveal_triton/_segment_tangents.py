"""The tangent pass of a semi-Markov model in Triton: the derivative of both marginals along a direction g.

    past start    E[ G before | a segment of k starts at t ]    = sum_i p[t, i, k] (g[t, i, k] + past end[t-1, i]) / sum_i p[t, i, k]
    past end      E[ G so far | a segment of k ends at t ]      = sum_d m[t-d, d, k] (g[t-d, d, k] + past start[t-d, k]) / sum_d m[t-d, d, k]
    future start  E[ G from t on | a segment of k starts at t ] = sum_d m[t, d, k] (g[t, d, k] + future end[t+d, k]) / sum_d m[t, d, k]
    future end    E[ G after | a segment of i ends at t-1 ]     = sum_k p[t, i, k] (g[t, i, k] + future start[t, k]) / sum_k p[t, i, k]
    segment       m[t, d, k] (g[t, d, k] + past start[t, k] + future end[t+d, k])
    pair          p[t, i, k] (g[t, i, k] + past end[t-1, i] + future start[t, k])

G is the sum of g over a segmentation. Every segmentation covers each position once, so g of a segment is taken less
the mean of G over the positions that the segment covers, and no number grows with T. `totals` (B, T) has the mean of G up to
each position. The total over the segments that cover a position is constant; its derivative, which is a
rounding error, is subtracted. Parts on padding have probability 0 and need no mask.

Axes and rows as in `_segment_sweeps`.
References: Mensch & Blondel 2018.
"""

import triton
import triton.language as tl

from ._numbers import inverse_or_zero
from ._segment_kernels import SIZES
from ._segment_sweeps import cover_of, rows_of, segments_of, store_covers


@triton.jit
def gains_of(masses, direction, at, on, GIVEN: tl.constexpr):
    """Return probabilities and the direction; the direction of an impossible part is ignored."""
    mass = tl.load(masses + at, mask=on, other=0.0)
    gain = tl.zeros_like(mass)
    if GIVEN:
        gain = tl.where(mass != 0, tl.load(direction + at, mask=on, other=0.0), 0.0)
    return mass, gain


@triton.jit
def centered(
    segments, on_segments, totals, row, t, on, d, length,
    LENGTHS: tl.constexpr, LABELS: tl.constexpr, PADDED: tl.constexpr, SEGMENTS: tl.constexpr, BY_END: tl.constexpr,
):  # fmt: skip
    """Return the probabilities (BLOCK, D, K) of the segments that start at each row, or BY_END end at it, and the
    direction less the mean of G over their positions.
    """
    begin = t[:, None] - d if BY_END else t[:, None] + 0 * d
    first = row[:, None] - d if BY_END else row[:, None] + 0 * d
    label = tl.arange(0, PADDED)
    at = ((first * LENGTHS + d) * LABELS)[:, :, None] + label[None, None, :]
    span = (d < LENGTHS) & (begin >= 0) & (begin + d < length)
    on = on[:, None, :] & span[:, :, None]
    mass, gain = gains_of(segments, on_segments, at, on, SEGMENTS)
    # Where no label exists, no number is read.
    span = tl.max(on.to(tl.int32), 2) != 0
    covered = tl.load(totals + first + d, mask=span, other=0.0)
    covered = covered - tl.load(totals + first - 1, mask=span & (begin > 0), other=0.0)
    return mass, gain - covered.to(mass.dtype)[:, :, None]


@triton.jit(do_not_specialize=SIZES)
def measure(
    segments, pairs, on_segments, on_pairs, gains,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, SEGMENTS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Write the mean of G of the segments that start at each position and of the steps into it (B, T)."""
    row, _, _, _, on, at_edge, on_edge = rows_of(rows, length, gains, LABELS, PADDED, BLOCK, False)
    d = tl.arange(0, SLOTS)[None, :]
    at, on = segments_of(row, on, d, LENGTHS, LABELS, PADDED)
    mass, along = gains_of(segments, on_segments, at, on, SEGMENTS)
    both, across = gains_of(pairs, on_pairs, at_edge, on_edge, PAIRS)
    gain = tl.sum(tl.sum(mass * along, 2), 1) + tl.sum(tl.sum(both * across, 2), 1)
    tl.store(gains + row, gain, mask=row < rows)


@triton.jit(do_not_specialize=SIZES)
def prepare(
    segments, pairs, on_segments, on_pairs, totals, scales, past_terms, future_terms,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, SEGMENTS: tl.constexpr, PAIRS: tl.constexpr,
):  # fmt: skip
    """Write the scales and the terms of the sweeps (2, B, T, K), of starts and of ends."""
    row, t, _, at, on, at_edge, on_edge = rows_of(
        rows, length, totals, LABELS, PADDED, BLOCK, False
    )
    d = tl.arange(0, SLOTS)[None, :]
    of_ends = tl.full((1, 1), LABELS, tl.int64) * rows
    mass, along = centered(segments, on_segments, totals, row, t, on, d, length,
                           LENGTHS, LABELS, PADDED, SEGMENTS, False)  # fmt: skip
    scale = inverse_or_zero(tl.sum(mass, 1))
    both, across = gains_of(pairs, on_pairs, at_edge, on_edge, PAIRS)
    tl.store(scales + at, scale, mask=on)
    tl.store(future_terms + at, tl.sum(mass * along, 1) * scale, mask=on)
    tl.store(past_terms + at, tl.sum(both * across, 1) * scale, mask=on)
    mass, along = centered(segments, on_segments, totals, row, t, on, d, length,
                           LENGTHS, LABELS, PADDED, SEGMENTS, True)  # fmt: skip
    scale = inverse_or_zero(tl.sum(mass, 1))
    leaves = (on & (t + 1 < length)[:, None])[:, :, None]
    leaves = leaves & (tl.arange(0, PADDED) < LABELS)[None, None, :]
    both, across = gains_of(pairs, on_pairs, at_edge + LABELS * LABELS, leaves, PAIRS)
    tl.store(scales + of_ends + at, scale, mask=on)
    tl.store(past_terms + of_ends + at, tl.sum(mass * along, 1) * scale, mask=on)
    tl.store(future_terms + of_ends + at, tl.sum(both * across, 2) * scale, mask=on)


@triton.jit
def changes_of(
    segments, on_segments, totals, past_starts, future_ends, row, t, at, on, d, length,
    LENGTHS: tl.constexpr, LABELS: tl.constexpr, PADDED: tl.constexpr, SEGMENTS: tl.constexpr,
):  # fmt: skip
    """Return the probabilities of the segments that start at each row, and their derivatives with rounding errors."""
    mass, along = centered(segments, on_segments, totals, row, t, on, d, length,
                           LENGTHS, LABELS, PADDED, SEGMENTS, False)  # fmt: skip
    reached = (d < LENGTHS) & (t[:, None] + d < length)
    after = tl.load(future_ends + at[:, None, :] + (d * LABELS)[:, :, None],
                    mask=on[:, None, :] & reached[:, :, None], other=0.0)  # fmt: skip
    before = tl.load(past_starts + at, mask=on, other=0.0)
    return mass, mass * (along + before[:, None, :] + after)


@triton.jit(do_not_specialize=SIZES)
def weigh_changes(
    segments, on_segments, totals, past_starts, future_ends, covers,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, SEGMENTS: tl.constexpr,
):  # fmt: skip
    """Write the contributions to the sums of derivatives over each position."""
    row, t, _, at, on, _, _ = rows_of(rows, length, totals, LABELS, PADDED, BLOCK, False)
    d = tl.arange(0, SLOTS)[None, :]
    _, change = changes_of(segments, on_segments, totals, past_starts, future_ends, row, t, at, on, d, length,
                           LENGTHS, LABELS, PADDED, SEGMENTS)  # fmt: skip
    within = (t[:, None] + d < length) & (d < LENGTHS) & (row < rows)[:, None]
    store_covers(covers, change, row, within, d, LENGTHS)


@triton.jit(do_not_specialize=SIZES)
def join_changes(
    segments, pairs, on_segments, on_pairs, totals, past_starts, past_ends, future_starts, future_ends, covers,
    along_segments, along_pairs,
    rows, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, SEGMENTS: tl.constexpr, PAIRS: tl.constexpr, WANT_PAIRS: tl.constexpr,
):  # fmt: skip
    """Write the derivatives of both marginals, less their rounding errors."""
    row, t, _, at, on, at_edge, on_edge = rows_of(
        rows, length, totals, LABELS, PADDED, BLOCK, False
    )
    d = tl.arange(0, SLOTS)[None, :]
    rest = cover_of(covers, row, t, row < rows, d, LENGTHS)[:, None, None]
    mass, change = changes_of(segments, on_segments, totals, past_starts, future_ends, row, t, at, on, d, length,
                              LENGTHS, LABELS, PADDED, SEGMENTS)  # fmt: skip
    here, on_segment = segments_of(row, on, d, LENGTHS, LABELS, PADDED)
    tl.store(along_segments + here, change - mass * rest, mask=on_segment)
    if WANT_PAIRS:
        both, across = gains_of(pairs, on_pairs, at_edge, on_edge, PAIRS)
        before = tl.load(past_ends + at - LABELS, mask=on & (t > 0)[:, None], other=0.0)
        after = tl.load(future_starts + at, mask=on, other=0.0)
        gains = across + before[:, :, None] + after[:, None, :]
        tl.store(along_pairs + at_edge, both * (gains - rest), mask=on_edge)
