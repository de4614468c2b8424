"""Compiles every kernel at every size for four GPUs, and checks registers, spills and shared memory.

    python -m benchmarks.gpu compile

The table is `results/gpu_compile.json`; a row that misses its limit makes the command fail.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import torch

from ..results import Results, Row
from .cases import FAMILIES, Family
from .recording import Launch, launches_of
from .targets import MOST_REGISTERS, TARGETS, Resources, compiled, resources

OUT = Path("results/gpu_compile.json")
# The name of a row shows these constants; the others do not choose another variant of a kernel.
_SHOWN = (
    "PADDED", "SLOTS", "ROWS", "LANES", "SPLITS", "FIRST", "BACK", "SCALED", "KEEP", "BEST", "DRAW",
)  # fmt: skip


def variants(family: Family, *, amd: bool) -> dict[str, Launch]:
    """Return the launches of a family that compile to different kernels, by the names of their rows."""
    found: dict[tuple[object, ...], Launch] = {}
    sizes = [(size, torch.float32) for size in (*family.sizes, family.largest)]
    for size, dtype in (*sizes, (family.largest, torch.float64)):
        for call in family.calls(size, "meta", dtype).values():
            for launch in launches_of(call, amd=amd):
                key = launch.name, launch.types, launch.constants, launch.warps
                found.setdefault(key, launch)
    named: dict[str, Launch] = {}
    for launch in found.values():
        shown = [f"{name} {value}".lower() for name, value in launch.constants if name in _SHOWN]
        wide = ["float64"] if launch.types[0] == "*fp64" else []
        # The first of several variants that differ in other constants has the most inputs.
        named.setdefault(f"{launch.name} ({', '.join(shown + wide)})", launch)
    return named


def rows_of(name: str, target: str, found: Resources) -> Iterator[Row]:
    """Yield the rows of one kernel for one GPU."""
    limits = {
        "registers": (found.registers, "registers", MOST_REGISTERS),
        "spills": (found.spilled, "bytes", 0),
        "shared memory": (found.shared, "bytes", TARGETS[target].most_shared),
    }
    for what, (value, unit, most) in limits.items():
        yield Row(name=f"{name}, {target}: {what}", value=value, unit=unit, target=most, sense="<=")


def compile_family(family: Family, pattern: str = "") -> Iterator[Row]:
    """Compile the kernels of one family whose names match a pattern, for all GPUs."""
    kernels = {amd: variants(family, amd=amd) for amd in (False, True)}
    for name in kernels[False]:
        if re.search(pattern, name):
            for target, gpu in TARGETS.items():
                yield from rows_of(
                    name, target, resources(compiled(kernels[gpu.is_amd][name], gpu), gpu)
                )


def main() -> int:
    """Write the table; return 1 if a kernel exceeds a limit."""
    results = Results.here("python -m benchmarks.gpu compile", packages=["triton", "foveal-triton"])
    for family in FAMILIES:
        rows = list(compile_family(family))
        results = results.with_rows(rows)
        count = len(rows) // 3 // len(TARGETS)
        print(f"{family.name}: {count} kernels compiled for {len(TARGETS)} GPUs", flush=True)
    results.save(OUT)
    for row in results.missed():
        print(f"over the limit: {row.name}: {row.value:g} {row.unit}, at most {row.target:g}")
    print(f"written to {OUT}")
    return 1 if results.missed() else 0
