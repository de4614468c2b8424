"""Monotone alignments in Triton: one antidiagonal n = i + j of the grid at a time, one row i in each lane.

    inside    a[v]    = log sum_k exp( a[from(v, k)] + moves[v, k] ),   a of the first node is 0
    weights   w[v, k] = exp( a[from(v, k)] + moves[v, k] - a[v] )  =  p( move k | the path visits v )
    outside   x[u]    = sum over moves k out of u, into v, of w[v, k] x[v]
    past      E[ G up to v | v ]  = sum_k w[v, k] (g[v, k] + past[from(v, k)])
    future    E[ G after u; u ]   = sum over moves k out of u, into v, of x[v] w[v, k] g[v, k] + w[v, k] future[v]

Moves: 0 match from (i-1, j-1), 1 skip from (i-1, j), 2 skip from (i, j-1). A step needs the two
antidiagonals before it, in registers, shifted by one lane. G is the sum of the direction g over a path;
g is taken less its mean over the antidiagonals that a move crosses (`gained`), so no number grows.

A sequential program computes one item; nothing it reads was written by its own launch. Tables for later
kernels are sorted by antidiagonals: weights (B, N, 3, R), nodes (B, N, R).

Masked rows and columns come first in an order that the launch computes: `rows` and `columns` (B, R) and
(B, C) have the index of each row and column in the input, and `first` (B, 2) has the number of masked ones.

Axes: B batch, R rows, C columns, N = R + C - 1 antidiagonals, 3 moves, P paths.
References: Needleman & Wunsch 1970; Mensch & Blondel 2018.
"""

import triton
import triton.language as tl

from ._numbers import NEVER, add, log_add, shifted


@triton.jit
def corner(first, item, MASKED: tl.constexpr):
    """Return the first real row and the first real column of an item."""
    if MASKED:
        return tl.load(first + item * 2), tl.load(first + item * 2 + 1)
    else:
        return item.to(tl.int32) * 0, item.to(tl.int32) * 0


@triton.jit
def offsets(rows, columns, item, i, j, on, num_rows, num_columns, row_stride, column_stride,
            MASKED: tl.constexpr):  # fmt: skip
    """Return the offsets of nodes (i, j) of an item in the input."""
    row, column = i, j
    if MASKED:
        row = tl.load(rows + item * num_rows + i, mask=on, other=0)
        column = tl.load(columns + item * num_columns + j, mask=on, other=0)
    return (item * num_rows * num_columns + row.to(tl.int64) * row_stride
            + column.to(tl.int64) * column_stride) * 3  # fmt: skip


@triton.jit
def inside(
    moves, rows, columns, first, log_partition, weights, num_rows, num_columns, row_stride, column_stride,
    ROWS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr, KEEP: tl.constexpr,
    FAST: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write log Z (B,) and, with KEEP, the weights. SKIP is the index of move 1 in the input."""
    PAIR: tl.constexpr = moves.dtype.element_ty == tl.float32
    item = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, ROWS)
    last = num_rows + num_columns - 1
    top, left = corner(first, item, MASKED)
    hi = tl.where(i == top, 0.0, NEVER).to(moves.dtype.element_ty)
    lo = tl.zeros_like(hi)
    hi_above = tl.full(
        (ROWS,), NEVER, moves.dtype.element_ty
    )  # row i - 1, one antidiagonal earlier
    lo_above = lo
    for n in tl.range(top + left + 1, last, num_stages=STAGES):
        j = n - i
        on_rows = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left)
        down, right = on_rows & (i > top), on_rows & (j > left)
        at = moves + offsets(rows, columns, item, i, j, on_rows, num_rows, num_columns, row_stride,
                             column_stride, MASKED)  # fmt: skip
        match = tl.where(down & right, tl.load(at, mask=down & right, other=0.0), NEVER)
        skip_row = tl.where(down, tl.load(at + SKIP, mask=down, other=0.0), NEVER)
        skip_column = tl.where(right, tl.load(at + 3 - SKIP, mask=right, other=0.0), NEVER)
        match, lost_match = add(hi_above, match, PAIR)
        lost_match += lo_above
        hi_above, lo_above = shifted(hi, i, 1, ROWS, NEVER), shifted(lo, i, 1, ROWS, 0.0)
        skip_row, lost_row = add(hi_above, skip_row, PAIR)
        skip_column, lost_column = add(hi, skip_column, PAIR)
        hi, lo, w_match, w_row, w_column = log_add(
            (match, skip_row, skip_column), (lost_match, lost_row + lo_above, lost_column + lo),
            FAST, PAIR, 3)  # fmt: skip
        if KEEP:
            table = weights + (item * last + n) * 3 * num_rows + i
            tl.store(table, w_match, mask=i < num_rows)
            tl.store(table + num_rows, w_row, mask=i < num_rows)
            tl.store(table + 2 * num_rows, w_column, mask=i < num_rows)
    tl.store(log_partition + item, tl.sum(tl.where(i == num_rows - 1, hi + lo, 0.0), 0))


@triton.jit
def sweep(
    weights, first, log_partition, terms, out, num_rows, num_columns,
    ROWS: tl.constexpr, BACK: tl.constexpr, TERM: tl.constexpr, MASKED: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Compute x[v] = sum_k w[v, k] x[from(v, k)], or BACK x[u] = sum of w[v, k] x[v] over the moves out of
    u, and with TERM the terms (B, N, R). Without terms, the last node is 1 if there is a path.
    """
    item = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, ROWS)
    last = num_rows + num_columns - 1
    top, left = corner(first, item, MASKED)
    weights += item * last * 3 * num_rows
    at_node = item * last * num_rows + i
    exists = i < num_rows
    begin = last - 1 if BACK else top + left
    if TERM:
        x = tl.load(terms + at_node + begin * num_rows, mask=exists, other=0.0)
    else:
        total = tl.load(log_partition + item)
        x = tl.where(i == num_rows - 1, tl.where(total == NEVER, 0.0, total - total + 1.0), 0.0)
    tl.store(out + at_node + begin * num_rows, x, mask=exists)
    before = tl.zeros_like(x)  # the previous antidiagonal but one, shifted by a lane
    for step in tl.range(1, last - top - left, num_stages=STAGES):
        n = begin - step if BACK else begin + step
        if BACK:
            j = n - i
            there = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left)
            down = there & (i < num_rows - 1)
            right = there & (j < num_columns - 1)
            table = weights + (n + 1) * 3 * num_rows + i
            w_match = tl.load(
                table + 3 * num_rows + 1, mask=down & right & (n + 2 < last), other=0.0
            )
            w_row = tl.load(table + num_rows + 1, mask=down, other=0.0)
            w_column = tl.load(table + 2 * num_rows, mask=right, other=0.0)
            beyond = shifted(x, i, -1, ROWS, 0.0)
        else:
            table = weights + n * 3 * num_rows + i
            w_match = tl.load(table, mask=exists, other=0.0)
            w_row = tl.load(table + num_rows, mask=exists, other=0.0)
            w_column = tl.load(table + 2 * num_rows, mask=exists, other=0.0)
            beyond = shifted(x, i, 1, ROWS, 0.0)
        x = w_match * before + w_row * beyond + w_column * x
        if TERM:
            x += tl.load(terms + at_node + n * num_rows, mask=exists, other=0.0)
        before = beyond
        tl.store(out + at_node + n * num_rows, x, mask=exists)


@triton.jit
def best(
    moves, rows, columns, first, scores, pointers, num_rows, num_columns, row_stride, column_stride,
    ROWS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the best score (B,), and the best move into each node (B, N, R), as an index of the input."""
    item = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, ROWS)
    last = num_rows + num_columns - 1
    top, left = corner(first, item, MASKED)
    score = tl.where(i == top, 0.0, NEVER).to(tl.float64)
    above = tl.full((ROWS,), NEVER, tl.float64)
    for n in tl.range(top + left + 1, last, num_stages=STAGES):
        j = n - i
        on_rows = (i < num_rows) & (i >= top) & (j < num_columns) & (j >= left)
        down, right = on_rows & (i > top), on_rows & (j > left)
        at = moves + offsets(rows, columns, item, i, j, on_rows, num_rows, num_columns, row_stride,
                             column_stride, MASKED)  # fmt: skip
        match = tl.where(down & right, tl.load(at, mask=down & right, other=0.0), NEVER)
        skip_row = tl.where(down, tl.load(at + SKIP, mask=down, other=0.0), NEVER)
        skip_column = tl.where(right, tl.load(at + 3 - SKIP, mask=right, other=0.0), NEVER)
        match = above + match.to(tl.float64)
        above = shifted(score, i, 1, ROWS, NEVER)
        skip_row = above + skip_row.to(tl.float64)
        skip_column = score + skip_column.to(tl.float64)
        score = tl.maximum(tl.maximum(match, skip_row), skip_column)
        chosen = tl.where(match == score, 0, tl.where(skip_row == score, SKIP, 3 - SKIP))
        tl.store(pointers + (item * last + n) * num_rows + i, chosen, mask=i < num_rows)
    found = tl.sum(tl.where(i == num_rows - 1, score, 0.0), 0)
    tl.store(scores + item, found.to(scores.dtype.element_ty))


@triton.jit
def chosen(table, here, on):
    """Select the entry of each path (PATHS,) from a table with one entry for each row (ROWS,)."""
    return tl.sum(tl.where(here, tl.load(table, mask=on, other=0)[None, :], 0), 1)


@triton.jit
def trace(
    tables, rows, columns, first, uniforms, paths, num_paths, num_rows, num_columns, row_stride,
    column_stride,
    ROWS: tl.constexpr, PATHS: tl.constexpr, SKIP: tl.constexpr, MASKED: tl.constexpr,
    DRAW: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Set the moves of paths (P, B, R, C, 3) to 1, from the last node back. The tables are pointers; with
    DRAW they are weights, and `uniforms` (P, B, N-1) choose the moves. The grid is (B, blocks of paths).
    """
    item, batch = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    path = tl.program_id(1) * PATHS + tl.arange(0, PATHS)
    exists = path < num_paths
    i = tl.arange(0, ROWS)
    last = num_rows + num_columns - 1
    top, left = corner(first, item, MASKED)
    # `offsets` adds the offset of the item.
    apart = path.to(tl.int64) * batch * num_rows * num_columns * 3
    row = tl.zeros((PATHS,), tl.int32) + (num_rows - 1)
    passing = row < 0  # a match skips an antidiagonal
    for step in tl.range(0, last - 1 - top - left, num_stages=STAGES):
        n = last - 1 - step
        here, on_rows = i[None, :] == row[:, None], i < num_rows
        if DRAW:
            table = tables + (item * last + n) * 3 * num_rows + i
            w_match = chosen(table, here, on_rows)
            w_row = chosen(table + num_rows, here, on_rows)
            w_column = chosen(table + 2 * num_rows, here, on_rows)
            at_uniform = (path.to(tl.int64) * batch + item) * (last - 1) + n - 1
            uniform = tl.load(uniforms + at_uniform, mask=exists, other=0.0).to(w_match.dtype)
            uniform = uniform * (w_match + w_row + w_column)
            # Rounding may lead past the last possible move: then choose that move.
            past_row = (uniform >= w_match + w_row) | (w_row == 0)
            later = tl.where(past_row & (w_column > 0), 3 - SKIP, SKIP)
            move = tl.where((uniform < w_match) | (w_row + w_column == 0), 0, later)
        else:
            move = chosen(tables + (item * last + n) * num_rows + i, here, on_rows)
        column = n - row
        inside_grid = exists & (row >= top) & (column >= left) & (column < num_columns)
        on = inside_grid & (passing == 0)
        at = offsets(rows, columns, item, row, column, on, num_rows, num_columns, row_stride,
                     column_stride, MASKED)  # fmt: skip
        tl.store(paths + apart + at + move, tl.full((PATHS,), 1, tl.int8), mask=on)
        row = tl.where((passing == 0) & (move != 3 - SKIP), row - 1, row)
        passing = (passing == 0) & (move == 0)
