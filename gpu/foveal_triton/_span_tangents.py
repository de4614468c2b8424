"""The tangent pass of bracketings in Triton: the derivative of span marginals along a direction g.

    below[span] = g[span] + sum_s w[s] (below of the left part + below of the right part)
    change      = the derivative of the probability m of a span
    own         = change - m (below[span] - g[span])
    change      of a part receives  w[s] ( own + m (below of the left part + below of the right part) )

All trees have the same words, and the same number of wider spans: g of the words is left out, and g of the
wider spans is taken less its mean, so no number grows. Charts below (B, 2, N, N): below, and below - g.

Axes and charts as in `_span_kernels`.
"""

import triton
import triton.language as tl

from ._charts import SIZES, num_real, num_splits, spans_of, store_twice
from ._span_kernels import places_of


@triton.jit(do_not_specialize=SIZES)
def mean_of(
    kept, direction, places, counts, means, batch, num_nodes, kept_size,
    BLOCK: tl.constexpr, LANES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the mean (B,) of the direction over the spans of two words or more of a tree."""
    item = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    exists = item < batch
    count = num_real(counts, item, exists, num_nodes, 0, MASKED)
    last = tl.arange(0, LANES)[None, :]
    masses = (kept + item * kept_size + num_splits(num_nodes, num_nodes))[:, None]
    total = tl.zeros((BLOCK, LANES), means.dtype.element_ty)
    for first in tl.range(0, num_nodes - 1):
        on = exists[:, None] & (last > first) & (last < count[:, None])
        mass = tl.load(masses + first * num_nodes + last, mask=on, other=0.0)
        at = places_of(
            places, item[:, None], first + tl.zeros_like(last), last, on, num_nodes, MASKED
        )
        total += mass * tl.load(direction + at, mask=on, other=0.0)
    mean = tl.sum(total, 1) / tl.maximum(count - 1, 1)
    tl.store(means + item, mean, mask=exists)


@triton.jit(do_not_specialize=SIZES)
def expect(
    kept, direction, means, places, counts, below, rows, width, num_nodes, kept_size,
    BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fill the charts below for the spans of one width."""
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    real = exists & (j < num_real(counts, item, exists, num_nodes, 0, MASKED))
    split = tl.arange(0, SPLITS)[None, :]
    on = real[:, None] & (split < width)
    area = num_nodes * num_nodes
    chart = below + item * 2 * area
    at = item * kept_size + num_splits(width, num_nodes) + i * width
    weight = tl.load(kept + at[:, None] + split, mask=on, other=0.0)
    left = tl.load((chart + i * num_nodes + i)[:, None] + split, mask=on, other=0.0)
    right = tl.load((chart + j * num_nodes + i + 1)[:, None] + split, mask=on, other=0.0)
    at = places_of(places, item, i, j, real, num_nodes, MASKED)
    mean = tl.load(means + item, mask=real, other=0.0)
    own = tl.load(direction + at, mask=real, other=0.0) - mean
    mixture = tl.sum(weight * (left + right), 1)
    store_twice(chart, i, j, num_nodes, mixture + own, exists)
    tl.store(chart + area + i * num_nodes + j, mixture, mask=exists)


@triton.jit(do_not_specialize=SIZES)
def share_change(
    kept, places, counts, below, own, tangent, rows, width, num_nodes, kept_size,
    BLOCK: tl.constexpr, SPLITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the changes of the spans of one width, which are sums over the wider spans. A parent
    is `more` wider than the span.
    """
    item, i, j, exists = spans_of(rows, width, num_nodes, BLOCK)
    count = num_real(counts, item, exists, num_nodes, 0, MASKED)
    real = exists & (j < count)
    more = tl.arange(0, SPLITS)[None, :] + 1
    area = num_nodes * num_nodes
    kept += item * kept_size
    masses, parent = kept + num_splits(num_nodes, num_nodes), width + more
    weights = kept[:, None] + num_splits(parent, num_nodes)
    chart, owns = below + item * 2 * area, own + item * area
    at, across = i * num_nodes + j, j * num_nodes + i
    mass = tl.load(masses + at, mask=real, other=0.0)
    here = tl.load(chart + at, mask=real, other=0.0)
    mixture = tl.load(chart + area + at, mask=real, other=0.0)

    on = real[:, None] & (j[:, None] + more < count[:, None])  # the span is the left part
    to = at[:, None] + more
    left = tl.load(weights + i[:, None] * parent + width, mask=on, other=0.0)
    m_left = tl.load(masses[:, None] + to, mask=on, other=0.0)
    own_left = tl.load(owns[:, None] + to, mask=on, other=0.0)
    other_left = tl.load((chart + (j + 1) * num_nodes + j)[:, None] + more, mask=on, other=0.0)
    on = real[:, None] & (more <= i[:, None])  # the span is the right part
    to = across[:, None] - more
    right = tl.load(weights + (i[:, None] - more) * parent + more - 1, mask=on, other=0.0)
    m_right = tl.load(masses[:, None] + to, mask=on, other=0.0)
    own_right = tl.load(owns[:, None] + to, mask=on, other=0.0)
    other_right = tl.load((chart + (i - 1) * num_nodes + i)[:, None] - more, mask=on, other=0.0)

    passed = left * (own_left + m_left * (here[:, None] + other_left))
    passed += right * (own_right + m_right * (here[:, None] + other_right))
    change = tl.sum(passed, 1)
    store_twice(owns, i, j, num_nodes, change - mass * mixture, exists)
    at = places_of(places, item, i, j, real, num_nodes, MASKED)
    tl.store(tangent + at, change, mask=real)
