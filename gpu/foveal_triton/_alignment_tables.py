"""The passes of the monotone alignment that compute all antidiagonals at once, in Triton.

A program computes one antidiagonal of one item: program = item * N + n. The total over the nodes of an
antidiagonal and over the matches that skip it is 1 in the outside pass, and its derivative is 0.

Axes and layouts: see `_alignment_kernels`.
"""

import triton
import triton.language as tl

from ._alignment_kernels import corner, offsets
from ._numbers import inverse_or_zero


@triton.jit
def place(
    first, num_rows, num_columns, ROWS: tl.constexpr, MASKED: tl.constexpr, BEYOND: tl.constexpr
):
    """Return item, antidiagonal, rows, columns, and the nodes with a move down and a move to the right,
    of the antidiagonal BEYOND the one of the program.
    """
    last = num_rows + num_columns - 1
    program = tl.program_id(0).to(tl.int64)
    item = program // last
    n = (program % last).to(tl.int32) + BEYOND
    i = tl.arange(0, ROWS)
    j = n - i
    top, left = corner(first, item, MASKED)
    real = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left) & (n < last)
    return item, n, i, j, real & (i > top), real & (j > left)


@triton.jit
def weights_at(weights, item, n, i, down, right, num_rows, num_columns):
    """Load the weights of the three moves into the nodes of an antidiagonal."""
    table = weights + (item * (num_rows + num_columns - 1) + n) * 3 * num_rows + i
    match = tl.load(table, mask=down & right, other=0.0)
    skip_row = tl.load(table + num_rows, mask=down, other=0.0)
    return match, skip_row, tl.load(table + 2 * num_rows, mask=right, other=0.0)


@triton.jit
def values_at(values, rows, columns, item, i, j, down, right, num_rows, num_columns, row_stride,
              column_stride, SKIP: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """Load the values of the three moves into the nodes of an antidiagonal, in the layout of the input."""
    at = values + offsets(rows, columns, item, i, j, down | right, num_rows, num_columns, row_stride,
                          column_stride, MASKED)  # fmt: skip
    match = tl.load(at, mask=down & right, other=0.0)
    skip_row = tl.load(at + SKIP, mask=down, other=0.0)
    return match, skip_row, tl.load(at + 3 - SKIP, mask=right, other=0.0)


@triton.jit
def store_at(out, match, skip_row, skip_column, rows, columns, first, item, i, j, down, right, num_rows,
             num_columns, row_stride, column_stride, SKIP: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """Store the values of the three moves into the nodes of an antidiagonal, 0 for a move from outside."""
    top, left = corner(first, item, MASKED)
    on = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left)
    at = out + offsets(rows, columns, item, i, j, on, num_rows, num_columns, row_stride,
                       column_stride, MASKED)  # fmt: skip
    tl.store(at, tl.where(down & right, match, 0.0), mask=on)
    tl.store(at + SKIP, tl.where(down, skip_row, 0.0), mask=on)
    tl.store(at + 3 - SKIP, tl.where(right, skip_column, 0.0), mask=on)


@triton.jit
def marginals_join(
    weights, nodes, rows, columns, first, marginals, num_rows, num_columns, row_stride, column_stride,
    ROWS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write marginals (B, R, C, 3) whose total over each antidiagonal is 1."""
    item, n, i, j, down, right = place(first, num_rows, num_columns, ROWS, MASKED, 0)
    _, _, _, _, next_down, next_right = place(first, num_rows, num_columns, ROWS, MASKED, 1)
    last = num_rows + num_columns - 1
    top, left = corner(first, item, MASKED)
    real = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left)
    match, skip_row, skip_column = weights_at(
        weights, item, n, i, down, right, num_rows, num_columns
    )
    at_node = (item * last + n) * num_rows + i
    x = tl.load(nodes + at_node, mask=real, other=0.0)
    later, _, _ = weights_at(weights, item, n + 1, i, next_down, next_right, num_rows, num_columns)
    x_later = tl.load(nodes + at_node + num_rows, mask=next_down & next_right, other=0.0)
    x = x * inverse_or_zero(tl.sum(x, 0) + tl.sum(later * x_later, 0))
    store_at(marginals, match * x, skip_row * x, skip_column * x, rows, columns, first, item, i, j, down,
             right, num_rows, num_columns, row_stride, column_stride, SKIP, MASKED)  # fmt: skip


@triton.jit
def gained(
    marginals, direction, rows, columns, first, gains, weights, num_rows, num_columns, row_stride,
    column_stride,
    ROWS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the mean of G over the moves into each antidiagonal (B, N), and the weights (B, N, 3, R)."""
    item, n, i, j, down, right = place(first, num_rows, num_columns, ROWS, MASKED, 0)
    last = num_rows + num_columns - 1
    match, skip_row, skip_column = values_at(
        marginals, rows, columns, item, i, j, down, right, num_rows, num_columns, row_stride,
        column_stride, SKIP, MASKED)  # fmt: skip
    g_match, g_row, g_column = values_at(
        direction, rows, columns, item, i, j, down, right, num_rows, num_columns, row_stride,
        column_stride, SKIP, MASKED)  # fmt: skip
    total = tl.sum(match * g_match + skip_row * g_row + skip_column * g_column, 0)
    tl.store(gains + item * last + n, total)
    scale = inverse_or_zero(match + skip_row + skip_column)
    table = weights + (item * last + n) * 3 * num_rows + i
    tl.store(table, match * scale, mask=i < num_rows)
    tl.store(table + num_rows, skip_row * scale, mask=i < num_rows)
    tl.store(table + 2 * num_rows, skip_column * scale, mask=i < num_rows)


@triton.jit
def centered(
    marginals, direction, rows, columns, gains, item, n, i, j, down, right, num_rows, num_columns,
    row_stride, column_stride, SKIP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return marginals times the direction less its mean over the antidiagonals that a move crosses."""
    match, skip_row, skip_column = values_at(
        marginals, rows, columns, item, i, j, down, right, num_rows, num_columns, row_stride,
        column_stride, SKIP, MASKED)  # fmt: skip
    g_match, g_row, g_column = values_at(
        direction, rows, columns, item, i, j, down, right, num_rows, num_columns, row_stride,
        column_stride, SKIP, MASKED)  # fmt: skip
    last = num_rows + num_columns - 1
    mean = tl.load(gains + item * last + n, mask=n < last, other=0.0)
    before = tl.load(gains + item * last + n - 1, mask=(n > 0) & (n < last), other=0.0)
    # The marginal of a move that no path makes is 0; its direction may be infinite.
    on_match = tl.where(match == 0, 0.0, match * (g_match - mean - before))
    on_row = tl.where(skip_row == 0, 0.0, skip_row * (g_row - mean))
    return (
        match,
        skip_row,
        skip_column,
        on_match,
        on_row,
        tl.where(skip_column == 0, 0.0, skip_column * (g_column - mean)),
    )


@triton.jit
def tangent_prepare(
    marginals, direction, rows, columns, first, gains, past_terms, future_terms, num_rows, num_columns,
    row_stride, column_stride,
    ROWS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the terms of both sweeps of a tangent (B, N, R): over the moves into a node, given the node,
    and over the moves out of a node.
    """
    item, n, i, j, down, right = place(first, num_rows, num_columns, ROWS, MASKED, 0)
    last = num_rows + num_columns - 1
    match, skip_row, skip_column, on_match, on_row, on_column = centered(
        marginals, direction, rows, columns, gains, item, n, i, j, down, right, num_rows, num_columns,
        row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    term = (on_match + on_row + on_column) * inverse_or_zero(match + skip_row + skip_column)
    at_node = (item * last + n) * num_rows + i
    tl.store(past_terms + at_node, term, mask=i < num_rows)
    # The moves out of (i, j) lead to (i + 1, j + 1), (i + 1, j) and (i, j + 1).
    top, left = corner(first, item, MASKED)
    real = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left)
    out_down, out_right = real & (i < num_rows - 1), real & (j < num_columns - 1)
    _, _, _, out, _, _ = centered(
        marginals, direction, rows, columns, gains, item, n + 2, i + 1, j + 1, out_down & out_right,
        out_down & out_right, num_rows, num_columns, row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    _, _, _, _, out_row, _ = centered(
        marginals, direction, rows, columns, gains, item, n + 1, i + 1, j, out_down, out_down & (j < 0),
        num_rows, num_columns, row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    _, _, _, _, _, out_column = centered(
        marginals, direction, rows, columns, gains, item, n + 1, i, j + 1, out_right & (i < 0), out_right,
        num_rows, num_columns, row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    tl.store(future_terms + at_node, out + out_row + out_column, mask=i < num_rows)


@triton.jit
def changes(
    marginals, direction, rows, columns, gains, weights, past, future, item, n, i, j, down, right, num_rows,
    num_columns, row_stride, column_stride, SKIP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Return the marginals of the moves into an antidiagonal, and their derivatives with an error in the
    total.
    """
    last = num_rows + num_columns - 1
    at_node = (item * last + n) * num_rows + i
    match, skip_row, skip_column, on_match, on_row, on_column = centered(
        marginals, direction, rows, columns, gains, item, n, i, j, down, right, num_rows, num_columns,
        row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    w_match, w_row, w_column = weights_at(weights, item, n, i, down, right, num_rows, num_columns)
    after = tl.load(future + at_node, mask=down | right, other=0.0)
    past_match = tl.load(past + at_node - 2 * num_rows - 1, mask=down & right, other=0.0)
    past_row = tl.load(past + at_node - num_rows - 1, mask=down, other=0.0)
    past_column = tl.load(past + at_node - num_rows, mask=right, other=0.0)
    on_match += match * past_match + w_match * after
    on_row += skip_row * past_row + w_row * after
    return (
        match,
        skip_row,
        skip_column,
        on_match,
        on_row,
        on_column + skip_column * past_column + w_column * after,
    )


@triton.jit
def tangent_join(
    marginals, direction, rows, columns, first, gains, weights, past, future, along, num_rows, num_columns,
    row_stride, column_stride,
    ROWS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Write the derivatives of the marginals (B, R, C, 3), without the rounding errors of the totals."""
    item, n, i, j, down, right = place(first, num_rows, num_columns, ROWS, MASKED, 0)
    _, later, _, j_later, next_down, next_right = place(
        first, num_rows, num_columns, ROWS, MASKED, 1
    )
    both = next_down & next_right
    match, skip_row, skip_column, on_match, on_row, on_column = changes(
        marginals, direction, rows, columns, gains, weights, past, future, item, n, i, j, down, right,
        num_rows, num_columns, row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    _, _, _, crossing, _, _ = changes(
        marginals, direction, rows, columns, gains, weights, past, future, item, later, i, j_later, both,
        both, num_rows, num_columns, row_stride, column_stride, SKIP, MASKED)  # fmt: skip
    rest = tl.sum(on_match + on_row + on_column, 0) + tl.sum(crossing, 0)
    store_at(along, on_match - match * rest, on_row - skip_row * rest, on_column - skip_column * rest, rows,
             columns, first, item, i, j, down, right, num_rows, num_columns, row_stride, column_stride, SKIP,
             MASKED)  # fmt: skip
