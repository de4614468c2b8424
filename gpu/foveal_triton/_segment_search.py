"""The best segmentation of a semi-Markov model and exact samples, in Triton.

`best` is the inside pass with maxima in place of sums; it writes pointers. `trace` follows them from the last position
back, or draws each length and each label from the conditionals of `_segment_kernels.inside`.

Axes: B batch, T positions, D lengths, K labels, S samples.
"""

import triton
import triton.language as tl

from ._charts import choose, num_real
from ._numbers import NEVER
from ._segment_kernels import SIZES, edge_places, lengths_of


@triton.jit(do_not_specialize=SIZES)
def best(
    segments, transitions, counts, scores, lengths, previous, last,
    rows, length, item_stride, step_stride,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the best score (B,), the best length of each segment by its end and the best label before each start
    (B, T, K), and the label of the last segment (B,). float64 is exact enough without a second number.
    """
    item, at_table, on_edge = edge_places(rows, item_stride, LABELS, PADDED, BLOCK)
    label, slot = tl.arange(0, PADDED), tl.arange(0, SLOTS)
    exists, known = item < rows, label < LABELS
    count = num_real(counts, item, exists, length, 0, MASKED)
    at_segment = item[:, None, None] * length * (LENGTHS * LABELS) + label[None, None, :]
    on_label = exists[:, None, None] & known[None, None, :]
    at_node = item[:, None] * length * LABELS + label[None, :]
    score = tl.zeros((BLOCK, PADDED), tl.float64) + tl.where(label == 0, 0.0, NEVER)[None, :]
    ring = tl.zeros((BLOCK, SLOTS, PADDED), tl.float64) + NEVER
    for t in tl.range(0, length, num_stages=STAGES):
        there = exists & (t < count)
        d = lengths_of(t, slot, LENGTHS, False)
        fits = (slot < LENGTHS) & (d <= t)
        on = on_label & there[:, None, None] & fits[None, :, None]
        place = at_segment + (((t - d) * LENGTHS + d) * LABELS)[None, :, None]
        own = tl.load(segments + place, mask=on, other=0.0)
        edge = tl.load(transitions + at_table + (t - 1) * step_stride,
                       mask=on_edge & (there & (t > 0))[:, None, None], other=0.0)  # fmt: skip
        start, source = tl.max(score[:, :, None] + edge.to(tl.float64), 1,
                               return_indices=True, return_indices_tie_break_left=True)  # fmt: skip
        start = tl.where(t == 0, 0.0, start)
        ring = tl.where((slot == t % LENGTHS)[None, :, None], start[:, None, :], ring)
        end, newest = tl.max(ring + tl.where(on, own, NEVER).to(tl.float64), 1,
                             return_indices=True, return_indices_tie_break_left=True)  # fmt: skip
        on_here = there[:, None] & known[None, :]
        tl.store(previous + at_node + t * LABELS, source, mask=on_here)
        # The first slot is chosen if no segment is possible; its length may reach beyond the first position.
        chosen = tl.minimum(lengths_of(t, newest, LENGTHS, False), t)
        tl.store(lengths + at_node + t * LABELS, chosen, mask=on_here)
        score = tl.where(there[:, None], end, score)
    highest, source = tl.max(score, 1, return_indices=True, return_indices_tie_break_left=True)
    tl.store(scores + item, highest.to(scores.dtype.element_ty), mask=exists)
    tl.store(last + item, source, mask=exists)


@triton.jit(do_not_specialize=SIZES)
def trace(
    lengths, previous, last, uniforms, counts, labels,
    rows, batch, length,
    LABELS: tl.constexpr, PADDED: tl.constexpr, LENGTHS: tl.constexpr, SLOTS: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr, DRAW: tl.constexpr,
):  # fmt: skip
    """Write the labels of segmentations (S, B, T) at the starts of segments, and -1 elsewhere: from pointers, or
    with DRAW from conditionals and uniform numbers (S, B, 2 T), one for the length and one for the label of the
    segment that ends at each position.
    """
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    exists, item = row < rows, row % batch
    label, d = tl.arange(0, PADDED)[None, :], tl.arange(0, SLOTS)[None, :]
    count = num_real(counts, item, exists, length, 0, MASKED)
    draws, first = uniforms + row * 2 * length, item * length
    some = exists & (count > 0)
    if DRAW:
        on = some[:, None] & (label < LABELS)
        weights = tl.load(last + item[:, None] * LABELS + label, mask=on, other=0.0)
        own = choose(weights, label, tl.load(draws + 2 * count - 1, mask=some, other=0.0))
    else:
        own = tl.load(last + item, mask=some, other=0)
    left = tl.zeros((BLOCK,), tl.int32)  # positions of the segment before t
    for step in tl.range(0, length):
        t = length - 1 - step
        there = exists & (t < count)
        ending = there & (left == 0)
        if DRAW:
            at = (((first + t)[:, None] - d) * LENGTHS + d) * LABELS + own[:, None]
            on = ending[:, None] & (d < LENGTHS) & (d <= t)
            weights = tl.load(lengths + at, mask=on, other=0.0)
            chosen = choose(weights, d, tl.load(draws + 2 * t, mask=ending, other=0.0))
        else:
            chosen = tl.load(lengths + (first + t) * LABELS + own, mask=ending, other=0)
        left = tl.where(there, tl.where(ending, chosen, left - 1), 0)
        starting = there & (left == 0)
        tl.store(labels + row * length + t, tl.where(starting, own, -1).to(tl.int64), mask=exists)
        into = starting & (t > 0)
        if DRAW:
            at = ((first - item + t - 1)[:, None] * LABELS + label) * LABELS + own[:, None]
            on = into[:, None] & (label < LABELS)
            weights = tl.load(previous + at, mask=on, other=0.0)
            before = choose(weights, label, tl.load(draws + 2 * t - 1, mask=into, other=0.0))
        else:
            before = tl.load(previous + (first + t) * LABELS + own, mask=into, other=0)
        own = tl.where(into, before, own)
