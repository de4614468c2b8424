"""CTC in Triton: one frame at a time, one label and the blank before it in each lane.

    b[t, l] = log p(blank) + log( exp b[t-1, l] + exp y[t-1, l-1] )
    y[t, l] = log p(label l) + log( exp y[t-1, l] + exp b[t-1, l] + exp y[t-1, l-1] ),
              the last term only if labels l and l - 1 differ

A masked frame copies both. Only y moves from lane to lane. With KEEP, the inside pass writes the five
weights of each lane (B, T, 5, LANES), and `outside` the probability of both states (B, T, 2, LANES).
`labels` (B, L) has the real labels first; `counts` (B,) is their number.

Axes: B batch, T frames, V symbols, L labels.
Reference: Graves et al. 2006.
"""

import triton
import triton.language as tl

from ._numbers import NEVER, add, inverse_or_zero, log_add, shifted


@triton.jit
def frame_is_real(frames, item, t, length, MASKED: tl.constexpr):
    """Return whether a frame is real."""
    if MASKED:
        return tl.load(frames + item * length + t) != 0
    else:
        return t >= 0


@triton.jit
def labels_of(labels, counts, item, lane, most):
    """Return the label of each lane, the number of labels, and whether a path may skip the blank before a
    label: if the previous label differs.
    """
    count = tl.load(counts + item)
    label = tl.load(labels + item * most + lane, mask=lane < count, other=-1)
    before = tl.load(labels + item * most + lane - 1, mask=(lane > 0) & (lane < count), other=-1)
    return label, count, (lane > 0) & (lane < count) & (label != before)


@triton.jit
def inside(
    log_probs, frames, labels, counts, log_partition, weights, ends, length, symbols, most, blank,
    LANES: tl.constexpr, MASKED: tl.constexpr, KEEP: tl.constexpr, FAST: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Write log Z (B,) and, with KEEP, the weights and the probabilities of both last states (B, 2)."""
    PAIR: tl.constexpr = log_probs.dtype.element_ty == tl.float32
    item = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    label, count, differs = labels_of(labels, counts, item, lane, most)
    b_hi = tl.where(lane == 0, 0.0, NEVER).to(log_probs.dtype.element_ty)
    b_lo = tl.zeros_like(b_hi)
    y_hi = tl.full((LANES,), NEVER, log_probs.dtype.element_ty)
    y_lo = tl.zeros_like(b_hi)
    for t in tl.range(0, length, num_stages=STAGES):
        at = log_probs + (item * length + t) * symbols
        real = frame_is_real(frames, item, t, length, MASKED)
        of_blank = tl.load(at + blank + lane * 0, mask=lane <= count, other=0.0)
        of_label = tl.load(at + label, mask=lane < count, other=0.0)
        of_blank = tl.where(lane <= count, of_blank, NEVER)
        of_label = tl.where(lane < count, of_label, NEVER)
        left_hi, left_lo = shifted(y_hi, lane, 1, LANES, NEVER), shifted(y_lo, lane, 1, LANES, 0.0)
        skip = tl.where(differs, left_hi, NEVER)
        hi, lo, b_stay, b_enter, _ = log_add((b_hi, left_hi), (b_lo, left_lo), FAST, PAIR, 2)
        new_b, lost_b = add(hi, of_blank, PAIR)
        lost_b += lo
        hi, lo, y_stay, y_enter, y_skip = log_add(
            (y_hi, b_hi, skip), (y_lo, b_lo, left_lo), FAST, PAIR, 3
        )
        new_y, lost_y = add(hi, of_label, PAIR)
        lost_y += lo
        b_hi, b_lo = tl.where(real, new_b, b_hi), tl.where(real, lost_b, b_lo)
        y_hi, y_lo = tl.where(real, new_y, y_hi), tl.where(real, lost_y, y_lo)
        if KEEP:
            table = weights + (item * length + t) * 5 * LANES + lane
            tl.store(table, tl.where(real, b_stay, 1.0))
            tl.store(table + LANES, tl.where(real, b_enter, 0.0))
            tl.store(table + 2 * LANES, tl.where(real, y_stay, 1.0))
            tl.store(table + 3 * LANES, tl.where(real, y_enter, 0.0))
            tl.store(table + 4 * LANES, tl.where(real, y_skip, 0.0))
    # A path ends in the last label or in the blank after it.
    is_blank, is_label = lane == count, lane == count - 1
    b_end = tl.sum(tl.where(is_blank, b_hi, 0.0), 0)
    y_end = tl.where(count > 0, tl.sum(tl.where(is_label, y_hi, 0.0), 0), NEVER)
    b_rest = tl.sum(tl.where(is_blank, b_lo, 0.0), 0)
    y_rest = tl.sum(tl.where(is_label, y_lo, 0.0), 0)
    hi, lo, of_b, of_y, _ = log_add((b_end, y_end), (b_rest, y_rest), FAST, PAIR, 2)
    tl.store(log_partition + item, hi + lo)
    if KEEP:
        tl.store(ends + item * 2, of_b)
        tl.store(ends + item * 2 + 1, of_y)


@triton.jit
def outside(
    weights, counts, ends, states, length,
    LANES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the probability of the blank and of the label of each lane in each frame."""
    item = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    count = tl.load(counts + item)
    b = tl.where(lane == count, tl.load(ends + item * 2), 0.0)
    y = tl.where(lane == count - 1, tl.load(ends + item * 2 + 1), 0.0)
    for step in tl.range(0, length, num_stages=STAGES):
        row = item * length + (length - 1 - step)
        tl.store(states + row * 2 * LANES + lane, b)
        tl.store(states + (row * 2 + 1) * LANES + lane, y)
        table = weights + row * 5 * LANES + lane
        b_stay, b_enter = tl.load(table), tl.load(table + LANES)
        y_stay, y_enter, y_skip = (tl.load(table + 2 * LANES), tl.load(table + 3 * LANES),
                                   tl.load(table + 4 * LANES))  # fmt: skip
        from_left = shifted(b * b_enter + y * y_skip, lane, -1, LANES, 0.0)
        b = b * b_stay + y * y_enter
        y = y * y_stay + from_left


@triton.jit
def join(
    states, frames, labels, counts, marginals, length, symbols, most, blank,
    LANES: tl.constexpr, MASKED: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Write the probability of each symbol in each frame (B, T, V), in a tensor of zeros. A program is a
    frame. Equal labels are summed by comparison, in one order, and the first of them is written.
    """
    row = tl.program_id(0).to(tl.int64)
    item, t = row // length, row % length
    lane = tl.arange(0, LANES)
    label, count, _ = labels_of(labels, counts, item, lane, most)
    real = frame_is_real(frames, item, t, length, MASKED)
    states += row * 2 * LANES
    b, y = tl.load(states + lane), tl.load(states + LANES + lane)
    scale = inverse_or_zero(tl.sum(b + y, 0))
    total = tl.zeros_like(y)
    earlier = tl.zeros((LANES,), tl.int32)
    for start in range(0, LANES, AT_ONCE):
        other = start + tl.arange(0, AT_ONCE)
        same = tl.load(labels + item * most + other, mask=other < count, other=-2)
        mass = tl.load(states + LANES + other)
        equal = same[None, :] == label[:, None]
        total += tl.sum(tl.where(equal, mass[None, :], 0.0), 1)
        earlier += tl.sum((equal & (other[None, :] < lane[:, None])).to(tl.int32), 1)
    out = marginals + row * symbols
    tl.store(out + blank, tl.sum(b, 0) * scale, mask=real)
    tl.store(out + label, total * scale, mask=(lane < count) & (earlier == 0) & real)
