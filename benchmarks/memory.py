"""How much memory does one operation need at its peak?

One operation of one case runs in a child process. Its peak is the largest resident size during the call,
less the size just before it, when libraries are loaded and the input is drawn. The figure is the kernel's
high-water mark (VmHWM, reset before the call) and not `ru_maxrss`, which a child inherits from its
parent. Linux only.

    python -m benchmarks.memory "chain edges" train foveal 16 200 50      prints bytes
"""

import argparse
import gc
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .cases import US, Family, Size
from .families import family_named
from .results import Row
from .timing import use_one_thread

ROOT = Path(__file__).parents[1]
STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
RESET_HIGH_WATER_MARK = "5"

# The exponents of O(T K^2), with a margin for constant parts.
LENGTH_EXPONENT_TARGET = 1.3
STATES_EXPONENT_TARGET = 2.3


def rows() -> Iterator[Row]:
    """Yield all memory rows."""
    yield from chain_growth()


def chain_growth() -> Iterator[Row]:
    """Yield the growth of a chain's training step with its length and its number of states."""
    family = family_named("chain edges")
    size = batch, length, states = (16, 200, 50)
    peak = measure(family, "train", US, size)
    yield _megabytes(family, "train", US, size, peak)
    yield Row(
        name=f"chain edges train memory per potential {size}",
        value=peak / (batch * (length - 1) * states**2),
        unit="bytes",
    )
    for what, smaller, target in (
        ("length", (batch, length // 2, states), LENGTH_EXPONENT_TARGET),
        ("states", (batch, length, states // 2), STATES_EXPONENT_TARGET),
    ):
        less = measure(family, "train", US, smaller)
        yield _megabytes(family, "train", US, smaller, less)
        yield Row(
            name=f"chain edges train memory exponent in {what}, {smaller} to {size}",
            value=math.log2(peak / less),
            unit="exponent",
            target=target,
            sense="<=",
        )
    if "torch-struct" in family.build(size).operations["train"]:
        theirs = measure(family, "train", "torch-struct", size)
        yield _megabytes(family, "train", "torch-struct", size, theirs)


def measure(family: Family, operation: str, library: str, size: Size) -> int:
    """Return the peak memory of one call in a child process, in bytes."""
    arguments = [family.name, operation, library, *map(str, size)]
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode != 0:
        raise RuntimeError(f"Measuring the memory of {arguments} failed:\n{child.stderr}")
    return int(child.stdout)


def measure_here(family: Family, operation: str, library: str, size: Size) -> int:
    """Return the peak memory of one call in this process, in bytes."""
    smallest = tuple(min(2, number) for number in size)
    family.build(smallest).operations[operation][library]()  # the first call loads libraries
    call = family.build(size).operations[operation][library]
    gc.collect()
    CLEAR_REFS.write_text(RESET_HIGH_WATER_MARK)
    before = resident_bytes()
    call()
    return _status_bytes("VmHWM") - before


def resident_bytes() -> int:
    """Return the current resident size of the process."""
    return _status_bytes("VmRSS")


def _megabytes(family: Family, operation: str, library: str, size: Size, peak: int) -> Row:
    return Row(
        name=f"{family.name} {operation} peak memory {size}, {library}",
        value=peak / 1e6,
        unit="MB",
    )


def _status_bytes(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    assert found, f"{STATUS} has no {field}"
    return int(found[1]) * 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the peak memory of one call, in bytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("family")
    parser.add_argument("operation")
    parser.add_argument("library")
    parser.add_argument("size", type=int, nargs="+")
    given = parser.parse_args(arguments)
    use_one_thread()
    family = family_named(given.family)
    print(measure_here(family, given.operation, given.library, tuple(given.size)))


if __name__ == "__main__":
    main()
