"""Projective dependency trees (Eisner) in Triton: the inside pass and the outside pass, by widths.

    join        J[i, j]  = sum_s  R[i, i+s]  L[i+s+1, j]        s = 0 .. k-1,  j = i + k
    incomplete  I>[i, j] = J[i, j] a[i, j],      I<[i, j] = J[i, j] a[j, i]
    complete    R[i, j]  = sum_s  I>[i, i+s+1]  R[i+s+1, j]     head i
                L[i, j]  = sum_s  L[i, i+s]  I<[i+s, j]         head j

With any number of roots, the root is node 0 and a tree is R[0, N-1]; with a single root (SHIFT = 1), the
nodes are only the words, and Z = sum_r a[root, r] L[0, r] R[r, N-1].

A chart of inside scores (B, 3, N, N) has R, L and I. Rows of I are heads and columns are words, so I> is in the upper
half and I< in the lower half. `kept` has for each item the weights of the splits of R, L and J, and then
their probabilities (3, N, N).

Axes and charts as in `_charts`; S samples.
References: Eisner 1996, 2000.
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
def arc_scores(arcs, item, head, word, on, size):
    """Load the scores of arcs between places of the input; the root has no head."""
    at = item * size * size + head.to(tl.int64) * size + word
    score = tl.load(arcs + at, mask=on & (word > 0), other=0.0)
    return tl.where(on & (word > 0), score, NEVER)


@triton.jit
def joined(left, right, on, PAIR: tl.constexpr):
    """Return the scores of splits, hi and lo, from those of their parts; -inf where `on` is False."""
    hi, lost = add(left[0], right[0], PAIR)
    return tl.where(on, hi, NEVER), tl.where(on, lost + (left[1] + right[1]), 0.0)


@triton.jit
def store_options(table, pointers, at, split_at, on, on_split, BEST: tl.constexpr):
    """Store the weights of splits, or pointers to the best split."""
    if BEST:
        tl.store(pointers + at, table, mask=on)
    else:
        tl.store(pointers + split_at, table, mask=on_split)


@triton.jit
def store_spans(hi, lo, at, across, area, found, on, PAIR: tl.constexpr):
    """Store hi and lo of R, L, I> and I< in the charts."""
    right, left, forth, back = found
    store_pair(hi, lo, at, right[0], right[1], on, PAIR)
    store_pair(hi, lo, across, right[0], right[1], on, PAIR)
    store_pair(hi, lo, at + area, left[0], left[1], on, PAIR)
    store_pair(hi, lo, across + area, left[0], left[1], on, PAIR)
    store_pair(hi, lo, at + 2 * area, forth[0], forth[1], on, PAIR)
    store_pair(hi, lo, across + 2 * area, back[0], back[1], on, PAIR)


@triton.jit(do_not_specialize=SIZES)
def inside(
    arcs, places, counts, hi, lo, options, rows, width, num_nodes, kept_size,
    SHIFT: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
    KEEP: tl.constexpr, BEST: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Fill the charts for the spans of one width. With KEEP, write the weights of splits to `options`, or with BEST
    compute maxima and write pointers to the best splits (B, 3, N, N).
    """
    PAIR: tl.constexpr = hi.dtype.element_ty == tl.float32
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    real = exists & (j < num_real(counts, item, exists, num_nodes, SHIFT, MASKED))
    split = tl.arange(0, SPLITS)[None, :]
    on = real[:, None] & (split < width)
    area, size = num_nodes * num_nodes, num_nodes + SHIFT
    chart = item * 3 * area
    row_i = (chart + i * num_nodes + i)[:, None] + split  # the part that ends at i + split
    row_j = (chart + j * num_nodes + i)[:, None] + split  # the part that starts at i + split
    inner, outer = on & (split < width - 1), on & (split > 0)
    left_r = load_pair(hi, lo, row_i, on, PAIR)
    right_l = load_pair(hi, lo, row_j + area + 1, on, PAIR)
    left_i = load_pair(hi, lo, row_i + 2 * area + 1, inner, PAIR)
    right_r = load_pair(hi, lo, row_j + 1, inner, PAIR)
    left_l = load_pair(hi, lo, row_i + area, outer, PAIR)
    right_i = load_pair(hi, lo, row_j + 2 * area, outer, PAIR)
    first = place_of(places, item, i + SHIFT, real, size, MASKED)
    last = place_of(places, item, j + SHIFT, real, size, MASKED)
    forth = arc_scores(arcs, item, first, last, real, size).to(hi.dtype.element_ty)
    back = arc_scores(arcs, item, last, first, real, size).to(hi.dtype.element_ty)

    score, rest = joined(left_r, right_l, on, PAIR)
    if BEST:
        join, join_lo, of_join = highest_of(score)
    else:
        join, join_lo, of_join = sum_of(score, rest, BLOCK, FAST, PAIR)
    forth, forth_lo = add(join, forth, PAIR)
    back, back_lo = add(join, back, PAIR)
    forth_lo, back_lo = forth_lo + join_lo, back_lo + join_lo
    # One split of R and of L has an incomplete span of this width as a part, and one node.
    score, rest = joined(left_i, right_r, inner, PAIR)
    own = on & (split == width - 1)
    score, rest = tl.where(own, forth[:, None], score), tl.where(own, forth_lo[:, None], rest)
    if BEST:
        right, right_lo, of_right = highest_of(score)
    else:
        right, right_lo, of_right = sum_of(score, rest, BLOCK, FAST, PAIR)
    score, rest = joined(left_l, right_i, outer, PAIR)
    own = on & (split == 0)
    score, rest = tl.where(own, back[:, None], score), tl.where(own, back_lo[:, None], rest)
    if BEST:
        left, left_lo, of_left = highest_of(score)
    else:
        left, left_lo, of_left = sum_of(score, rest, BLOCK, FAST, PAIR)

    found = (right, right_lo), (left, left_lo), (forth, forth_lo), (back, back_lo)
    at = chart + i * num_nodes + j
    store_spans(hi, lo, at, chart + j * num_nodes + i, area, found, exists, PAIR)
    if KEEP:
        packed = num_splits(num_nodes, num_nodes)
        to = (item * kept_size + num_splits(width, num_nodes) + i * width)[:, None] + split
        on = exists[:, None] & (split < width)
        store_options(of_right, options, at, to, exists, on, BEST)
        store_options(of_left, options, at + area, to + packed, exists, on, BEST)
        store_options(of_join, options, at + 2 * area, to + 2 * packed, exists, on, BEST)


@triton.jit(do_not_specialize=SIZES)
def top(
    arcs, places, counts, hi, lo, log_partition, chosen, marginals, batch, num_nodes,
    SHIFT: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, MASKED: tl.constexpr,
    KEEP: tl.constexpr, BEST: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Write log Z (B,) and the probabilities of the words of the root (B, N); of node 0, if the root is a node.
    With KEEP, write them to the marginals, too. With BEST, write the highest score and a pointer to the best
    word (B,).
    """
    PAIR: tl.constexpr = hi.dtype.element_ty == tl.float32
    item = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    exists = item < batch
    node = tl.arange(0, LANES)[None, :]
    count = num_real(counts, item, exists, num_nodes, SHIFT, MASKED)
    on = exists[:, None] & (node < count[:, None])
    area, size = num_nodes * num_nodes, num_nodes + SHIFT
    chart = (item * 3 * area)[:, None]
    last = tl.maximum(count - 1, 0)[:, None]
    right, right_lo = load_pair(hi, lo, chart + last * num_nodes + node, on, PAIR)
    if SHIFT == 1:
        left, left_lo = load_pair(hi, lo, chart + area + node, on, PAIR)
        place = place_of(places, item[:, None], node + 1, on, size, MASKED)
        arc = tl.load(arcs + (item * size * size)[:, None] + place, mask=on, other=0.0)
        score, first = add(left, right, PAIR)
        score, second = add(score, arc.to(hi.dtype.element_ty), PAIR)
        score, rest = tl.where(on, score, NEVER), first + second + (left_lo + right_lo)
        rest = tl.where(on, rest, 0.0)
    else:
        score = tl.where(on & (node == 0), right, NEVER)
        rest = tl.where(on & (node == 0), right_lo, 0.0)
    if BEST:
        found, found_lo, option = highest_of(score)
        tl.store(chosen + item, option, mask=exists)
    else:
        found, found_lo, option = sum_of(score, rest, BLOCK, FAST, PAIR)
        at = (item * num_nodes)[:, None] + node
        tl.store(chosen + at, option, mask=exists[:, None] & (node < num_nodes))
        if KEEP and SHIFT == 1:
            to = (item * size * size)[:, None] + place  # pyright: ignore[reportPossiblyUnboundVariable]
            tl.store(marginals + to, option, mask=on)
    # The empty sentence has one tree.
    found = tl.where(count == 0, 0.0, found + found_lo)
    tl.store(log_partition + item, found.to(log_partition.dtype.element_ty), mask=exists)


@triton.jit(do_not_specialize=SIZES)
def outside(
    kept, chosen, places, counts, marginals, rows, width, num_nodes, kept_size,
    SHIFT: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the probabilities of the spans of one width, which are sums over the wider spans. A
    parent is `more` wider than the span.
    """
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    count = num_real(counts, item, exists, num_nodes, SHIFT, MASKED)
    real = exists & (j < count)
    more = tl.arange(0, SPLITS)[None, :] + 1
    area, packed = num_nodes * num_nodes, num_splits(num_nodes, num_nodes)
    parent = width + more
    weights = (item * kept_size)[:, None] + num_splits(parent, num_nodes)
    masses = (item * kept_size + 3 * packed)[:, None]
    on = real[:, None] & (j[:, None] + more < count[:, None])
    before = weights + i[:, None] * parent + width  # the span is the left part of the parent
    mass = masses + (i * num_nodes + j)[:, None] + more
    w_right = tl.load(kept + before - 1, mask=on, other=0.0)
    w_left = tl.load(kept + before + packed, mask=on, other=0.0)
    w_join = tl.load(kept + before + 2 * packed, mask=on, other=0.0)
    m_right = tl.load(kept + mass, mask=on, other=0.0)
    m_left = tl.load(kept + mass + area, mask=on, other=0.0)
    m_join = tl.load(kept + mass + 2 * area, mask=on, other=0.0)
    on = real[:, None] & (more <= i[:, None])
    after = weights + (i[:, None] - more) * parent + more  # the span is the right part
    mass = masses + (j * num_nodes + i)[:, None] - more
    v_right = tl.load(kept + after - 1, mask=on, other=0.0)
    v_left = tl.load(kept + after + packed, mask=on, other=0.0)
    v_join = tl.load(kept + after - 1 + 2 * packed, mask=on, other=0.0)
    n_right = tl.load(kept + mass, mask=on, other=0.0)
    n_left = tl.load(kept + mass + area, mask=on, other=0.0)
    n_join = tl.load(kept + mass + 2 * area, mask=on, other=0.0)
    own = item * kept_size + num_splits(width, num_nodes) + i * width
    own_right = tl.load(kept + own + width - 1, mask=real, other=0.0)
    own_left = tl.load(kept + own + packed, mask=real, other=0.0)
    by_root = real & (j == count - 1) & ((i == 0) | (SHIFT == 1))
    from_root = tl.load(chosen + item * num_nodes + i, mask=by_root, other=0.0)
    by_root = real & (i == 0) & (SHIFT == 1)
    to_root = tl.load(chosen + item * num_nodes + j, mask=by_root, other=0.0)

    right = tl.sum(w_join * m_join + v_right * n_right, 1) + from_root
    left = tl.sum(w_left * m_left + v_join * n_join, 1) + to_root
    forth = tl.sum(w_right * m_right, 1) + own_right * right
    back = tl.sum(v_left * n_left, 1) + own_left * left
    to = kept + item * kept_size + 3 * packed
    store_twice(to, i, j, num_nodes, right, exists)
    store_twice(to + area, i, j, num_nodes, left, exists)
    store_twice(to + 2 * area, i, j, num_nodes, forth + back, exists)
    write_arcs(marginals, places, item, i, j, forth, back, real, num_nodes, SHIFT, MASKED)


@triton.jit
def write_arcs(marginals, places, item, i, j, forth, back, real, num_nodes, SHIFT: tl.constexpr,
               MASKED: tl.constexpr):  # fmt: skip
    """Store the numbers of rightward and leftward arcs between nodes at their places in the input."""
    size = num_nodes + SHIFT
    first = place_of(places, item, i + SHIFT, real, size, MASKED)
    last = place_of(places, item, j + SHIFT, real, size, MASKED)
    to = marginals + item * size * size
    tl.store(to + first * size + last, forth, mask=real)
    tl.store(to + last * size + first, back, mask=real & (first > 0))
