"""Compiles every kernel at every size for four GPUs, and checks registers, spills and shared memory.

    python -m benchmarks.gpu compile

The table is `results/gpu_compile.json`; a row that misses its limit makes the command fail.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ..results import Results, Row
from .cases import FAMILIES, Family
from .recording import Launch, launches_of
from .targets import MOST_REGISTERS, TARGETS, Resources, compiled, resources

OUT = Path("results/gpu_compile.json")
# The name of a row shows these constants; the others do not choose another variant of a kernel.
_SHOWN = ("PADDED", "ROWS", "LANES", "FIRST", "BACK", "KEEP", "DRAW")


def variants(family: Family) -> dict[str, Launch]:
    """Return the launches of a family that compile to different kernels, by the names of their rows."""
    found: dict[tuple[object, ...], Launch] = {}
    for size in (*family.sizes, family.largest):
        for call in family.calls(size, "meta").values():
            for launch in launches_of(call):
                found.setdefault((launch.name, launch.constants, launch.warps), launch)
    named: dict[str, Launch] = {}
    for launch in found.values():
        shown = ", ".join(f"{k} {v}".lower() for k, v in launch.constants if k in _SHOWN)
        name = f"{launch.name} ({shown})"
        # The first of several variants that differ in other constants has the most inputs.
        named.setdefault(name, launch)
    return named


def rows_of(name: str, target: str, found: Resources) -> Iterator[Row]:
    """Yield the rows of one kernel for one GPU."""
    limits = {
        "registers": (found.registers, "registers", MOST_REGISTERS),
        "spills": (found.spilled, "bytes", 0),
        "shared memory": (found.shared, "bytes", TARGETS[target].most_shared),
    }
    for what, (value, unit, most) in limits.items():
        yield Row(
            name=f"{name}, {target}: {what}", value=value, unit=unit, target=most, sense="<="
        )


def compile_family(index: int) -> list[Row]:
    """Compile the kernels of one family for all GPUs."""
    found: list[Row] = []
    for name, launch in variants(FAMILIES[index]).items():
        for target, gpu in TARGETS.items():
            found.extend(rows_of(name, target, resources(compiled(launch, gpu), gpu)))
    return found


def main() -> int:
    """Write the table; return 1 if a kernel exceeds a limit."""
    results = Results.here("python -m benchmarks.gpu compile", packages=["triton", "foveal-triton"])
    with ProcessPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        for family, rows in zip(FAMILIES, pool.map(compile_family, range(len(FAMILIES))), strict=True):
            results = results.with_rows(rows)
            count = len(rows) // 3 // len(TARGETS)
            print(f"{family.name}: {count} kernels compiled for {len(TARGETS)} GPUs", flush=True)
    results.save(OUT)
    for row in results.missed():
        print(f"over the limit: {row.name}: {row.value:g} {row.unit}, at most {row.target:g}")
    print(f"written to {OUT}")
    return 1 if results.missed() else 0
