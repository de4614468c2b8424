"""Arithmetic that the kernels share: sums of scores without rounding errors, and exp and log.

A float32 score is the unevaluated sum hi + lo of two float32 numbers: after 1000 steps, one float32 has no
digits left after the decimal point. exp and log are taken of differences, in float32. float64 scores
need no second number. A score of -inf forbids a choice; a NaN in a score makes all sums NaN that read it.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

NEVER = tl.constexpr(float("-inf"))
# The inverse of a smaller number is infinite in float32.
TINY = tl.constexpr(1.0e-37)
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def add(a, b, PAIR: tl.constexpr):
    """Return a + b and its rounding error, which is 0 unless PAIR. Contraction cannot change the
    result, because there is no product.
    """
    total = a + b
    if PAIR:
        of_b = total - a
        lost = (a - (total - of_b)) + (b - of_b)
        lost = tl.where(lost == lost, lost, 0.0)  # -inf - -inf is NaN
    else:
        lost = tl.zeros_like(total)
    return total, lost


@triton.jit
def exp(x):
    """Return the exponential of x <= 0. On NVIDIA, exp2 is one instruction; exp keeps subnormal numbers and is
    four.
    """
    return tl.exp2(x * LOG2E)


@triton.jit
def log(x, FAST: tl.constexpr):
    """Return the logarithm of x. On NVIDIA, `tl.log` is a polynomial of 12 dependent steps, and the fast logarithm
    (right to 2^-22) is one instruction. The interpreter has no libdevice; on AMD, `tl.log` is fast.
    """
    if FAST:
        return libdevice.fast_logf(x)
    else:
        return tl.log(x)


@triton.jit
def inverse_or_zero(x):
    """Return 1 / x, or 0 if x is so small that its inverse is infinite: then nothing depends on it.
    NaN remains NaN.
    """
    enough = x > TINY
    return tl.where(enough, 1.0 / tl.where(enough, x, 1.0), x - x)


@triton.jit
def log_sum(score, lost, AXIS: tl.constexpr):
    """Return exp(score + lost - shift) along an axis, its sum, and the shift, which is finite."""
    highest = tl.max(score, AXIS, keep_dims=True)
    shift = tl.where(highest == NEVER, 0.0, highest)
    weights = exp((score - shift) + lost)
    return weights, tl.sum(weights, AXIS), shift


@triton.jit
def shifted(x, lane, BY: tl.constexpr, SIZE: tl.constexpr, beyond):
    """Return x[lane - BY], and `beyond` where that is not an index."""
    source = lane - BY
    inside = (source >= 0) & (source < SIZE)
    found = tl.gather(x, tl.where(inside, source, 0), 0)
    return tl.where(inside, found, beyond)


@triton.jit
def log_add(hi, lo, FAST: tl.constexpr, PAIR: tl.constexpr, TERMS: tl.constexpr):
    """Return hi and lo of the log-sum of two or three scores, given as tuples, and their weights with a
    total of 1, or 0 if no score is possible.
    """
    top = tl.maximum(hi[0], hi[1])
    if TERMS == 3:
        top = tl.maximum(top, hi[2])
    shift = tl.where(top == NEVER, 0.0, top)
    first = exp((hi[0] - shift) + lo[0])
    second = exp((hi[1] - shift) + lo[1])
    third = tl.zeros_like(first)
    if TERMS == 3:
        third = exp((hi[2] - shift) + lo[2])
    total = first + second + third
    scale = inverse_or_zero(total)
    found, lost = add(shift, log(total, FAST), PAIR)
    return found, lost, first * scale, second * scale, third * scale
