"""Grows projective trees in Triton, from the widest span down: the best trees, and exact samples.

A program grows TREES trees. Each has a stack of the spans whose arcs are still to be found, in registers. A step
splits the last span; a tree of n words takes 2 n steps, or 2 n - 1 with a single root.

Axes and charts as in `_projective_kernels`; S samples.
"""

import triton
import triton.language as tl

from ._charts import SIZES, choose, num_real, num_splits, place_of, pop, push

RIGHT, LEFT, JOIN = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)


@triton.jit
def open_span(stack, height, slot, kind, start, width, num_nodes, on):
    """Put a span of two nodes or more on the stack."""
    code = (kind * num_nodes + start) * num_nodes + width
    return push(stack, height, slot, code.to(tl.int32), on & (width > 0))


@triton.jit
def root_of(table, uniforms, item, draws, option, on, count, num_nodes, DRAW: tl.constexpr):
    """Return the best word of a single root, or draw it."""
    if DRAW:
        mask = on[:, None] & (option < count[:, None])
        weights = tl.load(table + (item * num_nodes)[:, None] + option, mask=mask, other=0.0)
        return choose(weights, option, tl.load(uniforms + draws, mask=on, other=0.0))
    else:
        return tl.load(table + item, mask=on, other=0)


@triton.jit
def split_of(table, uniforms, item, draws, option, on, kind, start, width, num_nodes, kept_size,
             DRAW: tl.constexpr):  # fmt: skip
    """Return the best split of a span, or draw it."""
    if DRAW:
        first = (
            kind * num_splits(num_nodes, num_nodes) + num_splits(width, num_nodes) + start * width
        )
        mask = on[:, None] & (option < width[:, None])
        at = (item * kept_size + first)[:, None] + option
        weights = tl.load(table + at, mask=mask, other=0.0)
        return choose(weights, option, tl.load(uniforms + draws, mask=on, other=0.0))
    else:
        at = ((item * 3 + kind) * num_nodes + start) * num_nodes + start + width
        return tl.load(table + at, mask=on, other=0)


@triton.jit(do_not_specialize=SIZES)
def grow(
    table, roots, uniforms, places, counts, heads, rows, batch, num_nodes, kept_size, steps,
    SHIFT: tl.constexpr, TREES: tl.constexpr, LANES: tl.constexpr, MASKED: tl.constexpr,
    DRAW: tl.constexpr,
):  # fmt: skip
    """Write the heads (S, B, n) of trees, from pointers to the best splits, or from weights and uniform
    numbers (S, B, 2 M).
    """
    row = (tl.program_id(0) * TREES + tl.arange(0, TREES)).to(tl.int64)
    exists, item = row < rows, row % batch
    option = tl.arange(0, LANES)[None, :]
    size = num_nodes + SHIFT
    count = num_real(counts, item, exists, num_nodes, SHIFT, MASKED)
    draws, to = row * 2 * size, heads + row * (size - 1) - 1
    stack = tl.zeros((TREES, LANES), tl.int32)
    height = tl.zeros((TREES,), tl.int32)
    some = exists & (count > 0)
    zero = height
    if SHIFT == 1:
        root = root_of(roots, uniforms, item, draws, option, some, count, num_nodes, DRAW)
        root = tl.minimum(root, tl.maximum(count - 1, 0))
        tl.store(
            to + place_of(places, item, root + 1, some, size, MASKED), zero.to(tl.int64), mask=some
        )
        stack, height = open_span(stack, height, option, zero + LEFT, zero, root, num_nodes, some)
        stack, height = open_span(stack, height, option, zero + RIGHT, root, count - 1 - root,
                                  num_nodes, some)  # fmt: skip
    else:
        stack, height = open_span(
            stack, height, option, zero + RIGHT, zero, count - 1, num_nodes, some
        )
    for step in tl.range(0, steps):
        on = height > 0
        code, height = pop(stack, height, option)
        kind, rest = code // (num_nodes * num_nodes), code % (num_nodes * num_nodes)
        start, width = rest // num_nodes, rest % num_nodes
        split = split_of(table, uniforms, item, draws + step + SHIFT, option, on, kind, start, width,
                         num_nodes, kept_size, DRAW)  # fmt: skip
        split = tl.maximum(tl.minimum(split, width - 1), 0)
        middle, after = start + split, width - 1 - split
        is_join, is_right = kind == JOIN, kind == RIGHT
        # R and L add an arc: from the first node to one after the split, or from the last to one before.
        word = tl.where(is_right, middle + 1, middle)
        head = tl.where(is_right, start, start + width)
        adds = on & (kind != JOIN)
        word = place_of(places, item, word + SHIFT, adds, size, MASKED)
        head = place_of(places, item, head + SHIFT, adds, size, MASKED)
        tl.store(to + word, head.to(tl.int64), mask=adds)
        # A join leaves R and L; R and L leave the join under the arc, and a narrower R or L.
        stack, height = open_span(
            stack, height, option, tl.where(is_join, RIGHT, JOIN),
            tl.where(kind == LEFT, middle, start),
            tl.where(is_join, split, tl.where(is_right, split + 1, width - split)), num_nodes, on,
        )  # fmt: skip
        stack, height = open_span(
            stack, height, option, tl.where(is_right, RIGHT, LEFT),
            tl.where(kind == LEFT, start, middle + 1), tl.where(kind == LEFT, split, after),
            num_nodes, on,
        )  # fmt: skip
