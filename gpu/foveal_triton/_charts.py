"""Charts of spans, which the kernels of projective trees and of bracketings share.

A chart is a square (N, N) for each item. Both [i, j] and [j, i] hold the number of the span from node i to
node j, so the left parts of all splits of a span are adjacent, in row i, and so are the right parts, in row j.

The weights of splits are packed by width: the span of width k that starts at i has k of them, at
offset(k) + i k. One launch computes all spans of one width; it reads only narrower or only wider spans, so
no launch reads what it writes. Splits are in the lanes of a tile (BLOCK spans, SPLITS).

Masked nodes are removed: `places` (B, M) has the index in the input of each real node, in order, and `counts`
(B,) has their number. Spans that end after the last real node are never read.

Axes: B batch, M nodes of the input, N nodes of a chart.
References: Eisner 1996; Mensch & Blondel 2018 (tangents).
"""

import triton
import triton.language as tl

from ._numbers import add, inverse_or_zero, log, log_sum

# The integer arguments of kernels. Triton compiles a kernel again for 1 and for multiples of 16, and the lengths of
# sentences change with every batch.
SIZES = ["batch", "rows", "width", "size", "num_nodes", "kept_size", "steps"]


@triton.jit
def spans_of(rows, width, num_nodes, BLOCK: tl.constexpr):
    """Return item, start and end of the spans of a program, and whether they exist."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    count = num_nodes - width
    start = row % count
    return (row // count).to(tl.int64), start, start + width, row < rows


@triton.jit
def num_real(counts, item, on, num_nodes, SHIFT: tl.constexpr, MASKED: tl.constexpr):
    """Return the number of real nodes of a chart. The input has SHIFT more nodes."""
    if MASKED:
        return tl.load(counts + item, mask=on, other=0) - SHIFT
    else:
        return tl.zeros_like(item).to(tl.int32) + num_nodes


@triton.jit
def place_of(places, item, node, on, size, MASKED: tl.constexpr):
    """Return the index in the input of a node of the input without masked ones."""
    if MASKED:
        return tl.load(places + item * size + node, mask=on, other=0)
    else:
        return node


@triton.jit
def num_splits(width, num_nodes):
    """Return the number of splits of all spans that are narrower than `width`."""
    below = width - 1
    return num_nodes * (below * width // 2) - below * width * (2 * width - 1) // 6


@triton.jit
def load_pair(hi, lo, at, on, PAIR: tl.constexpr):
    """Load scores; the result does not matter where `on` is False."""
    first = tl.load(hi + at, mask=on, other=0.0)
    second = tl.zeros_like(first)
    if PAIR:
        second = tl.load(lo + at, mask=on, other=0.0)
    return first, second


@triton.jit
def store_pair(hi, lo, at, first, second, on, PAIR: tl.constexpr):
    """Store scores."""
    tl.store(hi + at, first, mask=on)
    if PAIR:
        tl.store(lo + at, second, mask=on)


@triton.jit
def store_twice(chart, start, end, num_nodes, numbers, on):
    """Store the numbers of spans in both halves of a chart."""
    tl.store(chart + start * num_nodes + end, numbers, mask=on)
    tl.store(chart + end * num_nodes + start, numbers, mask=on)


@triton.jit
def sum_of(score, rest, BLOCK: tl.constexpr, FAST: tl.constexpr, PAIR: tl.constexpr):
    """Return hi and lo of the log-sum of scores (BLOCK, options), and the weights with a total of 1, or 0 if
    no option is possible.
    """
    weights, total, shift = log_sum(score, rest, 1)
    hi, lo = add(tl.reshape(shift, (BLOCK,)), log(total, FAST), PAIR)
    return hi, lo, weights * inverse_or_zero(total)[:, None]


@triton.jit
def highest_of(score):
    """Return the highest score (BLOCK,), 0 in place of lo, and the index of its option."""
    hi, place = tl.max(score, 1, return_indices=True, return_indices_tie_break_left=True)
    return hi, tl.zeros_like(hi), place


@triton.jit
def choose(weights, option, uniform):
    """Choose an option of each row with its probability, by the inverse distribution function."""
    running = tl.cumsum(weights, 1)
    limit = uniform.to(weights.dtype) * tl.max(running, 1)
    below = tl.sum((running <= limit[:, None]).to(tl.int32), 1)
    # Rounding may lead past the last possible option: then choose that option.
    return tl.minimum(below, tl.max(tl.where(weights > 0, option, 0), 1))


@triton.jit
def push(stack, height, slot, code, on):
    """Put a code on the stack of each row where `on`; return the stack and its height."""
    stack = tl.where((slot == height[:, None]) & on[:, None], code[:, None], stack)
    return stack, height + on.to(tl.int32)


@triton.jit
def pop(stack, height, slot):
    """Return the last code of each stack, any code if it is empty, and the new height."""
    height = tl.maximum(height - 1, 0)
    return tl.sum(tl.where(slot == height[:, None], stack, 0), 1), height
