"""Tables of the page about GPUs, from results/gpu_compile.json and results/gpu_predicted.json.

<!-- gpu: compiled -->      the most registers, spills and shared memory of each kernel
<!-- gpu: predicted -->     predicted times of all operations, with the limits
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs_records import origin

MARKER = re.compile(r"^<!-- gpu: (compiled|predicted) -->$", re.MULTILINE)
_COMPILED = re.compile(r"(.+) \((.*)\), (\w+): (registers|spills|shared memory)")
_PREDICTED = re.compile(r"(.+) (\w+) (\(.+\)), (\w+), (predicted|limit)")


def number_table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table whose columns after the first contain numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def compiled(results: dict[str, Any]) -> list[str]:
    """Return the most of each resource over all variants of a kernel, by target."""
    most: dict[str, dict[tuple[str, str], int]] = {}
    variants: dict[str, set[str]] = {}
    limits: dict[tuple[str, str], int] = {}
    for row in results["rows"]:
        match = _COMPILED.fullmatch(row["name"])
        assert match is not None, row["name"]
        kernel, variant, target, what = match.groups()
        variants.setdefault(kernel, set()).add(variant)
        known = most.setdefault(kernel, {})
        known[target, what] = max(known.get((target, what), 0), row["value"])
        limits[target, what] = row["target"]
    targets = list(dict.fromkeys(target for target, _ in limits))
    rows = [
        [kernel, str(len(variants[kernel])), *(_cell(known, target) for target in targets)]
        for kernel, known in most.items()
    ]
    rows.append(["**limit**", "", *(_cell(limits, target) for target in targets)])
    return number_table(["kernel", "variants", *targets], rows)


def _cell(known: dict[tuple[str, str], int], target: str) -> str:
    shared = known[target, "shared memory"]
    return f"{known[target, 'registers']} / {known[target, 'spills']} / {shared}"


def predicted(results: dict[str, Any]) -> list[str]:
    """Return the predicted times with the limits in brackets: a row for each size and operation."""
    times: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for row in results["rows"]:
        match = _PREDICTED.fullmatch(row["name"])
        assert match is not None, row["name"]
        structure, what, size, device, kind = match.groups()
        times.setdefault((structure, size, what), {})[device, kind] = row["value"]
    devices = list(dict.fromkeys(device for found in times.values() for device, _ in found))
    rows = [
        [
            f"{structure} {size}, `{what}`",
            *(
                f"{found[device, 'predicted']:.0f} ({found[device, 'limit']:.1f})"
                for device in devices
            ),
        ]
        for (structure, size, what), found in times.items()
    ]
    return number_table(["predicted, µs (limit)", *devices], rows)


_TABLES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "compiled": compiled,
    "predicted": predicted,
}
_FILES = {"compiled": "gpu_compile.json", "predicted": "gpu_predicted.json"}


def gpu_table(name: str, results: Path) -> str:
    """Return the table of one marker, with its origin."""
    content = json.loads((results / _FILES[name]).read_text(encoding="utf-8"))
    return "\n".join([*_TABLES[name](content), "", origin(content)])
