"""The tangent pass of projective trees in Triton: the derivative of arc marginals along a direction g.

    below[span] = E[ G in the span | span ] = sum_s w[s] (below of the left part + below of the right part)
    change      = the derivative of the probability of a span
    own         = change - m below                     of R, L and J, with their probability m
    change      of a part receives  w[s] ( own + m (below of the left part + below of the right part) )

G(tree) is the sum of g over the arcs of a tree; g is taken less its mean over the heads of each word, so no
number grows. Charts below (B, 4, N, N): R, L, I and J. Charts own (B, 3, N, N): R, L and J.

Axes and charts as in `_projective_kernels`. The direction (B, M, M) has no masked nodes.
"""

import triton
import triton.language as tl

from ._charts import SIZES, num_real, num_splits, place_of, spans_of, store_twice
from ._projective_kernels import write_arcs


@triton.jit(do_not_specialize=SIZES)
def center(
    marginals, direction, places, counts, centered, rows, size,
    BLOCK: tl.constexpr, LANES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the direction less its mean over the heads of each word, 0 where there is no arc. A row is a
    word of an item.
    """
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = row < rows
    item, word = (row // size).to(tl.int64), row % size
    head = tl.arange(0, LANES)[None, :]
    count = num_real(counts, item, exists, size, 0, MASKED)
    real = (exists & (word > 0) & (word < count))[:, None]
    on = real & (head < count[:, None]) & (head != word[:, None])
    last = place_of(places, item[:, None], word[:, None], real, size, MASKED)
    first = place_of(places, item[:, None], head, on, size, MASKED)
    square = (item * size * size)[:, None]
    given = tl.load(direction + square + first * size + last, mask=on, other=0.0)
    mass = tl.load(marginals + square + first * size + last, mask=on, other=0.0)
    mean = tl.sum(mass * given, 1)[:, None]
    to = centered + square + head * size + word[:, None]
    tl.store(to, tl.where(on, given - mean, 0.0), mask=exists[:, None] & (head < size))


@triton.jit(do_not_specialize=SIZES)
def expect(
    kept, centered, counts, below, rows, width, num_nodes, kept_size,
    SHIFT: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fill the charts below for the spans of one width."""
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    real = exists & (j < num_real(counts, item, exists, num_nodes, SHIFT, MASKED))
    split = tl.arange(0, SPLITS)[None, :]
    on = real[:, None] & (split < width)
    area, size = num_nodes * num_nodes, num_nodes + SHIFT
    packed = num_splits(num_nodes, num_nodes)
    chart = below + item * 4 * area
    row_i = (chart + i * num_nodes + i)[:, None] + split
    row_j = (chart + j * num_nodes + i)[:, None] + split
    inner, outer = on & (split < width - 1), on & (split > 0)
    weights = (kept + item * kept_size + num_splits(width, num_nodes) + i * width)[:, None] + split
    w_right = tl.load(weights, mask=on, other=0.0)
    w_left = tl.load(weights + packed, mask=on, other=0.0)
    w_join = tl.load(weights + 2 * packed, mask=on, other=0.0)
    left_r = tl.load(row_i, mask=on, other=0.0)
    right_l = tl.load(row_j + area + 1, mask=on, other=0.0)
    left_i = tl.load(row_i + 2 * area + 1, mask=inner, other=0.0)
    right_r = tl.load(row_j + 1, mask=inner, other=0.0)
    left_l = tl.load(row_i + area, mask=outer, other=0.0)
    right_i = tl.load(row_j + 2 * area, mask=outer, other=0.0)
    arc = centered + item * size * size
    first, last = i + SHIFT, j + SHIFT
    g_forth = tl.load(arc + first * size + last, mask=real, other=0.0)
    g_back = tl.load(arc + last * size + first, mask=real, other=0.0)

    join = tl.sum(w_join * (left_r + right_l), 1)
    forth, back = join + g_forth, join + g_back
    own = split == width - 1
    right = tl.sum(w_right * tl.where(own, forth[:, None], left_i + right_r), 1)
    left = tl.sum(w_left * tl.where(split == 0, back[:, None], left_l + right_i), 1)
    store_twice(chart, i, j, num_nodes, right, exists)
    store_twice(chart + area, i, j, num_nodes, left, exists)
    at, across = i * num_nodes + j, j * num_nodes + i
    tl.store(chart + 2 * area + at, forth, mask=exists)
    tl.store(chart + 2 * area + across, back, mask=exists)
    tl.store(chart + 3 * area + at, join, mask=exists)


@triton.jit(do_not_specialize=SIZES)
def change_roots(
    marginals, centered, places, counts, below, chosen, tangent, batch, num_nodes,
    BLOCK: tl.constexpr, LANES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the derivatives of the root arcs of a single root, also to `chosen` (B, N)."""
    item = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    exists = item < batch
    node = tl.arange(0, LANES)[None, :]
    count = num_real(counts, item, exists, num_nodes, 1, MASKED)
    on = exists[:, None] & (node < count[:, None])
    area, size = num_nodes * num_nodes, num_nodes + 1
    chart, square = below + (item * 4 * area)[:, None], (item * size * size)[:, None]
    last = tl.maximum(count - 1, 0)[:, None]
    right = tl.load(chart + last * num_nodes + node, mask=on, other=0.0)
    left = tl.load(chart + area + node, mask=on, other=0.0)
    arc = tl.load(centered + square + node + 1, mask=on, other=0.0)
    place = place_of(places, item[:, None], node + 1, on, size, MASKED)
    mass = tl.load(marginals + square + place, mask=on, other=0.0)
    total = arc + left + right
    change = mass * (total - tl.sum(mass * total, 1)[:, None])
    tl.store(tangent + square + place, change, mask=on)
    tl.store(chosen + (item * num_nodes)[:, None] + node, change, mask=on)


@triton.jit(do_not_specialize=SIZES)
def share_change(
    kept, chosen, places, counts, below, own, tangent, rows, width, num_nodes, kept_size,
    SHIFT: tl.constexpr, BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the changes of the spans of one width, which are sums over the wider spans. A parent
    is `more` wider than the span.
    """
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    count = num_real(counts, item, exists, num_nodes, SHIFT, MASKED)
    real = exists & (j < count)
    more = tl.arange(0, SPLITS)[None, :] + 1
    area, packed = num_nodes * num_nodes, num_splits(num_nodes, num_nodes)
    parent = width + more
    kept += item * kept_size
    weights = kept[:, None] + num_splits(parent, num_nodes)
    masses, chart, owns = kept + 3 * packed, below + item * 4 * area, own + item * 3 * area
    at, across = i * num_nodes + j, j * num_nodes + i
    b_right = tl.load(chart + at, mask=real, other=0.0)
    b_left = tl.load(chart + area + at, mask=real, other=0.0)
    b_forth = tl.load(chart + 2 * area + at, mask=real, other=0.0)
    b_back = tl.load(chart + 2 * area + across, mask=real, other=0.0)
    b_join = tl.load(chart + 3 * area + at, mask=real, other=0.0)

    on = real[:, None] & (j[:, None] + more < count[:, None])
    to = at[:, None] + more  # the parent from i to j + more
    before = weights + i[:, None] * parent + width
    row_j = (chart + j * num_nodes + j)[:, None] + more
    column = (chart + j * num_nodes + j)[:, None] + more * num_nodes
    right = passed(before + 2 * packed, masses[:, None] + to + 2 * area, owns[:, None] + to + 2 * area,
                   b_right, row_j + area + num_nodes, on)  # fmt: skip
    left = passed(before + packed, masses[:, None] + to + area, owns[:, None] + to + area,
                  b_left, column + 2 * area, on)  # fmt: skip
    forth = passed(before - 1, masses[:, None] + to, owns[:, None] + to, b_forth, row_j, on)

    on = real[:, None] & (more <= i[:, None])
    to = across[:, None] - more  # the parent from i - more to j
    after = weights + (i[:, None] - more) * parent + more
    row_i = (chart + i * num_nodes + i)[:, None] - more
    column = (chart + i * num_nodes + i)[:, None] - more * num_nodes
    right += passed(after - 1, masses[:, None] + to, owns[:, None] + to, b_right,
                    column + 2 * area, on)  # fmt: skip
    left += passed(after - 1 + 2 * packed, masses[:, None] + to + 2 * area,
                   owns[:, None] + to + 2 * area, b_left, row_i - num_nodes, on)  # fmt: skip
    back = passed(after + packed, masses[:, None] + to + area, owns[:, None] + to + area, b_back,
                  row_i + area, on)  # fmt: skip

    if SHIFT == 1:
        first = real & (i == 0)
        right += tl.load(chosen + item * num_nodes + i, mask=real & (j == count - 1), other=0.0)
        left += tl.load(chosen + item * num_nodes + j, mask=first, other=0.0)
    m_right = tl.load(masses + at, mask=real, other=0.0)
    m_left = tl.load(masses + area + at, mask=real, other=0.0)
    m_join = tl.load(masses + 2 * area + at, mask=real, other=0.0)
    right, left = right - m_right * b_right, left - m_left * b_left
    same = kept + num_splits(width, num_nodes) + i * width
    forth += tl.load(same + width - 1, mask=real, other=0.0) * (right + m_right * b_forth)
    back += tl.load(same + packed, mask=real, other=0.0) * (left + m_left * b_back)
    store_twice(owns, i, j, num_nodes, right, exists)
    store_twice(owns + area, i, j, num_nodes, left, exists)
    store_twice(owns + 2 * area, i, j, num_nodes, forth + back - m_join * b_join, exists)
    write_arcs(tangent, places, item, i, j, forth, back, real, num_nodes, SHIFT, MASKED)


@triton.jit
def passed(weights, masses, owns, below, other, on):
    """Return what parents pass on to a part, given pointers to the numbers of the parents and of the other
    part.
    """
    weight = tl.load(weights, mask=on, other=0.0)
    mass = tl.load(masses, mask=on, other=0.0)
    change = tl.load(owns, mask=on, other=0.0)
    both = below[:, None] + tl.load(other, mask=on, other=0.0)
    return tl.sum(weight * (change + mass * both), 1)
