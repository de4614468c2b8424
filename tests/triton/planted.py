"""Kernels with one fault each, which the interpreter runs without an error, and two without any."""

# Triton is not installed where pyright runs.
# pyright: reportAttributeAccessIssue=false

import triton
import triton.language as tl


@triton.jit
def doubled(x, out, size, SIZE: tl.constexpr):
    """Sound: each program writes its own part, and masks the rest."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at, mask=at < size, other=0.0) * 2, mask=at < size)


@triton.jit
def doubled_in_place(x, size, SIZE: tl.constexpr):
    """Sound: each number is replaced by one that was made at its own place of the tile."""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(x + at, tl.load(x + at, mask=at < size, other=0.0) * 2, mask=at < size)


@triton.jit
def reads_beyond(x, out, SIZE: tl.constexpr):
    """Loads one number after the end of a tensor."""
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at + 1))


@triton.jit
def writes_beyond(x, out, SIZE: tl.constexpr):
    """Stores one number before the start of a tensor."""
    at = tl.arange(0, SIZE)
    tl.store(out + at - 1, tl.load(x + at))


@triton.jit
def writes_together(x, out, SIZE: tl.constexpr):
    """All programs write to the same addresses."""
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at) * tl.program_id(0))


@triton.jit
def reads_a_neighbor(out, SIZE: tl.constexpr):
    """Each program reads the number that the next program writes."""
    program = tl.program_id(0)
    before = tl.load(out + program + 1)
    tl.store(out + program + tl.zeros((SIZE,), tl.int32), before)


@triton.jit
def reads_what_it_wrote(x, out, SIZE: tl.constexpr):
    """Loads from an address after storing to it."""
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at))
    tl.store(x + at, tl.load(out + (SIZE - 1 - at)))


@triton.jit
def reverses_in_place(x, SIZE: tl.constexpr):
    """Stores to an address that another place of the tile has loaded."""
    at = tl.arange(0, SIZE)
    tl.store(x + (SIZE - 1 - at), tl.load(x + at))


@triton.jit
def overwrites(x, out, SIZE: tl.constexpr):
    """Stores to an address that another place of the tile has stored."""
    at = tl.arange(0, SIZE)
    value = tl.load(x + at)
    tl.store(out + at, value)
    tl.store(out + (SIZE - 1 - at), value)


@triton.jit
def stores_twice(x, out, SIZE: tl.constexpr):
    """One store has two values for each address."""
    at = tl.arange(0, SIZE)
    tl.store(out + at // 2, tl.load(x + at))


@triton.jit
def forgets_other(x, out, size, SIZE: tl.constexpr):
    """Sums lanes that it masked without a value for them."""
    at = tl.arange(0, SIZE)
    tl.store(out, tl.sum(tl.load(x + at, mask=at < size), 0))


@triton.jit
def counts_programs(out):
    """Sound, on a grid with two axes."""
    tl.store(out + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), 1.0)


@triton.jit
def numbers_of(x, powers, logarithms, quotients, total, SIZE: tl.constexpr):
    """Write exp2, log, a quotient and a sum."""
    at = tl.arange(0, SIZE)
    value = tl.load(x + at)
    tl.store(powers + at, tl.exp2(value))
    tl.store(logarithms + at, tl.log(value))
    tl.store(quotients + at, 1.0 / value)
    tl.store(total, tl.sum(value, 0))
