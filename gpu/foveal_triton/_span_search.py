"""Unfolds bracketings in Triton, from the widest span down: the best ones, and exact samples.

A program unfolds TREES trees. Each has a stack of the spans that are still to be split, in registers. A step
splits the last span; a tree of n words takes n - 1 steps.

Axes and charts as in `_span_kernels`; S samples.
"""

import triton
import triton.language as tl

from ._charts import SIZES, choose, num_real, num_splits, pop, push
from ._span_kernels import places_of


@triton.jit(do_not_specialize=SIZES)
def unfold(
    table, uniforms, places, counts, chosen, rows, batch, num_nodes, kept_size,
    TREES: tl.constexpr, LANES: tl.constexpr, MASKED: tl.constexpr, DRAW: tl.constexpr,
):  # fmt: skip
    """Write 1 on the spans of trees (S, B, N, N), from pointers to the best splits, or from weights and
    uniform numbers (S, B, N).
    """
    row = (tl.program_id(0) * TREES + tl.arange(0, TREES)).to(tl.int64)
    exists, item = row < rows, row % batch
    option = tl.arange(0, LANES)[None, :]
    area = num_nodes * num_nodes
    count = num_real(counts, item, exists, num_nodes, 0, MASKED)
    to, draws = chosen + (row - item) * area, uniforms + row * num_nodes
    stack = tl.zeros((TREES, LANES), tl.int32)
    height = tl.zeros((TREES,), tl.int32)
    zero = height
    one = (zero + 1).to(tl.int8)
    some = exists & (count > 0)
    at = places_of(places, item, zero, count - 1, some, num_nodes, MASKED)
    tl.store(to + at, one, mask=some)
    stack, height = push(stack, height, option, count - 1, exists & (count > 1))
    for step in tl.range(0, num_nodes - 1):
        on = height > 0
        code, height = pop(stack, height, option)
        start, width = code // num_nodes, code % num_nodes
        if DRAW:
            first = item * kept_size + num_splits(width, num_nodes) + start * width
            mask = on[:, None] & (option < width[:, None])
            weights = tl.load(table + first[:, None] + option, mask=mask, other=0.0)
            split = choose(weights, option, tl.load(draws + step, mask=on, other=0.0))
        else:
            at = item * area + start * num_nodes + start + width
            split = tl.load(table + at, mask=on, other=0)
        split = tl.maximum(tl.minimum(split, width - 1), 0)
        middle, after = start + split, width - 1 - split
        at = places_of(places, item, start, middle, on, num_nodes, MASKED)
        tl.store(to + at, one, mask=on)
        at = places_of(places, item, middle + 1, start + width, on, num_nodes, MASKED)
        tl.store(to + at, one, mask=on)
        stack, height = push(stack, height, option, start * num_nodes + split, on & (split > 0))
        code = (middle + 1) * num_nodes + after
        stack, height = push(stack, height, option, code, on & (after > 0))
