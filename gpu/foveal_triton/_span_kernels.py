"""Binary bracketings (CKY) in Triton: the inside pass and the outside pass, by widths.

    a[i, i] = s[i, i],      a[i, j] = s[i, j] + log sum_u exp( a[i, i+u] + a[i+u+1, j] )

A tree is the span of all words. `kept` has for each item the weights of the splits, and then the probabilities
of the spans (N, N).

Axes and charts as in `_charts`; all N = M nodes are words.
"""

import triton
import triton.language as tl

from ._charts import (
    SIZES,
    highest_of,
    load_pair,
    num_real,
    num_splits,
    place_of,
    spans_of,
    store_pair,
    store_twice,
    sum_of,
)
from ._numbers import NEVER, add


@triton.jit
def places_of(places, item, i, j, real, size, MASKED: tl.constexpr):
    """Return the offsets of spans in the input."""
    first = place_of(places, item, i, real, size, MASKED)
    last = place_of(places, item, j, real, size, MASKED)
    return (item * size + first) * size + last


@triton.jit(do_not_specialize=SIZES)
def inside(
    spans, places, counts, hi, lo, options, log_partition, rows, width, num_nodes, kept_size,
    BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr, KEEP: tl.constexpr,
    BEST: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Fill the chart for the spans of one width, 0 for single words; the span of all words gives log Z (B,).
    With KEEP, write the weights of splits to `options`, or with BEST compute maxima and write pointers to the
    best splits (B, N, N).
    """
    PAIR: tl.constexpr = hi.dtype.element_ty == tl.float32
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    count = num_real(counts, item, exists, num_nodes, 0, MASKED)
    real = exists & (j < count)
    split = tl.arange(0, SPLITS)[None, :]
    on = real[:, None] & (split < width)
    chart = item * num_nodes * num_nodes
    left, left_lo = load_pair(hi, lo, (chart + i * num_nodes + i)[:, None] + split, on, PAIR)
    right, right_lo = load_pair(hi, lo, (chart + j * num_nodes + i + 1)[:, None] + split, on, PAIR)
    at = places_of(places, item, i, j, real, num_nodes, MASKED)
    own = tl.load(spans + at, mask=real, other=0.0).to(hi.dtype.element_ty)
    score, rest = add(left, right, PAIR)
    score = tl.where(on, score, NEVER)
    if BEST:
        found, found_lo, table = highest_of(score)
    else:
        rest = tl.where(on, rest + (left_lo + right_lo), 0.0)
        found, found_lo, table = sum_of(score, rest, BLOCK, FAST, PAIR)
    found = tl.where(real & (width == 0), 0.0, found)
    found, lost = add(found, own, PAIR)
    found_lo = tl.where(width == 0, 0.0, found_lo) + lost
    to, across = chart + i * num_nodes + j, chart + j * num_nodes + i
    store_pair(hi, lo, to, found, found_lo, exists, PAIR)
    store_pair(hi, lo, across, found, found_lo, exists & (i < j), PAIR)
    whole = (found + found_lo).to(log_partition.dtype.element_ty)
    tl.store(log_partition + item, whole, mask=real & (i == 0) & (j == count - 1))
    if KEEP:
        if BEST:
            tl.store(options + to, table, mask=exists)
        else:
            to = (item * kept_size + num_splits(width, num_nodes) + i * width)[:, None] + split
            tl.store(options + to, table, mask=exists[:, None] & (split < width))


@triton.jit(do_not_specialize=SIZES)
def outside(
    kept, log_partition, places, counts, marginals, rows, width, num_nodes, kept_size,
    BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the probabilities of the spans of one width, which are sums over the wider spans. A
    parent is `more` wider than the span.
    """
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    count = num_real(counts, item, exists, num_nodes, 0, MASKED)
    real = exists & (j < count)
    more = tl.arange(0, SPLITS)[None, :] + 1
    kept += item * kept_size
    masses, parent = kept + num_splits(num_nodes, num_nodes), width + more
    weights = kept[:, None] + num_splits(parent, num_nodes)
    on = real[:, None] & (j[:, None] + more < count[:, None])  # the span is the left part
    left = tl.load(weights + i[:, None] * parent + width, mask=on, other=0.0)
    m_left = tl.load((masses + i * num_nodes + j)[:, None] + more, mask=on, other=0.0)
    on = real[:, None] & (more <= i[:, None])  # the span is the right part
    right = tl.load(weights + (i[:, None] - more) * parent + more - 1, mask=on, other=0.0)
    m_right = tl.load((masses + j * num_nodes + i)[:, None] - more, mask=on, other=0.0)
    total = tl.load(log_partition + item, mask=real, other=0.0)
    mass = tl.sum(left * m_left + right * m_right, 1)
    # The span of all words and the single words are in every tree: their probability is exactly 1, 0 if
    # there is no tree.
    always = (width == 0) | (width == count - 1)
    mass = tl.where(always, tl.where(total == NEVER, 0.0, total - total + 1.0), mass)
    store_twice(masses, i, j, num_nodes, mass, exists & (i < j))
    at = places_of(places, item, i, j, real, num_nodes, MASKED)
    tl.store(marginals + at, mass, mask=real)
