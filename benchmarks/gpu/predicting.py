"""Predicts the times of the kernels on GPUs, from their machine code. Nothing here is measured.

    python -m benchmarks.gpu predict

    time of a launch   = 2 us + steps * period / clock * waves        a sequential kernel
                         2 us + max( bytes / bandwidth, 1 us )         a kernel of all positions at once
    limit of an op     = max( bytes / bandwidth, steps * floor / clock )

Trees take one launch of the second kind for each width of spans; these launches move the bytes of the tensors
together.

The period of a loop is its dependent latency, or the time to issue the instructions of all warps of a
scheduler, if that is longer (`latency`). `waves` counts how often the programs fill the GPU, by registers,
shared memory and warps. The limit is the shortest possible time of the algorithm without launches: each
byte moves once, and each step takes the latency of its arithmetic in one lane. The cost of a launch in
Python, 10 to 20 us on most hosts, is not included; CUDA graphs avoid it.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch

from ..results import Results, Row
from .cases import FAMILIES
from .latency import DEVICES, Device, Loop, instructions, longest_loop, measure
from .recording import Launch, launches_of
from .targets import TARGETS, compiled, cubin_tool, resources

OUT = Path("results/gpu_predicted.json")
LAUNCH_US = 2.0
# A short kernel waits at least twice for memory.
SHORTEST_US = 1.0
# Cycles of a step in one lane: additions, multiplications and maxima take 4, exp2 and log2 take 18. A step
# in logarithms has about 7 of the first and one of each of the second, and 6 additions for the second number.
LOG_STEP, LINEAR_STEP = 88, 8
SCHEDULERS, MOST_WARPS, MOST_PROGRAMS = 4, 64, 32
REGISTERS, SHARED = 65536, 160 << 10  # of a multiprocessor
# Stored with the figures, which nobody has measured.
ASSUMPTIONS = {
    "figures": "predicted by a model, not measured",
    "a launch": f"{LAUNCH_US:g} us",
    "a short kernel": f"{SHORTEST_US:g} us",
    "a step in logarithms, at least": f"{LOG_STEP} cycles",
    "a linear step, at least": f"{LINEAR_STEP} cycles",
}
_IN_LOGARITHMS = ("inside", "scan", "best")


def steps_of(launch: Launch) -> int:
    """Return the rounds of the sequential loop of a launch; 0 if all positions are computed at once."""
    structure, _, kernel = launch.name.partition(" ")
    numbers = dict(launch.numbers)
    if structure in ("projective", "span"):
        return {"grow": numbers.get("steps", 0), "unfold": numbers.get("num_nodes", 1) - 1}.get(
            kernel, 0
        )
    if structure == "chain" and kernel in ("inside", "sweep"):
        return numbers["steps"]
    if structure == "chain" and kernel == "scan":
        return numbers["chunks"]
    if kernel in ("best", "follow", "inside", "outside", "sweep", "trace"):
        if structure == "alignment":
            return numbers["num_rows"] + numbers["num_columns"] - 2
        return numbers["length"]
    return 0


def launches_together(launch: Launch) -> int:
    """Return how many launches move the bytes of the tensors together: one for each width of spans."""
    numbers = dict(launch.numbers)
    return max(1, numbers["num_nodes"] - 1) if "width" in numbers else 1


@dataclass(frozen=True)
class Time:
    """A predicted time and the limit, in microseconds."""

    predicted: float
    limit: float

    def __add__(self, other: "Time") -> "Time":
        return Time(self.predicted + other.predicted, self.limit + other.limit)


def _key(launch: Launch) -> tuple[object, ...]:
    return launch.name, launch.constants, launch.warps


class Model:
    """Predicts launches on a device; each variant of a kernel is compiled once."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.compiled: dict[tuple[object, ...], tuple[Loop, int]] = {}

    def loop(self, launch: Launch) -> tuple[Loop, int]:
        """Return the sequential loop, and the programs that a multiprocessor runs at once."""
        key = _key(launch)
        if key not in self.compiled:
            target = TARGETS[self.device.target]
            found = compiled(launch, target)
            used = resources(found, target)
            body = longest_loop(instructions(cubin_tool(found, "-sass")))
            crowd = max(1, launch.warps // SCHEDULERS)
            loop = measure(body, self.device, crowd) if body else Loop(0, 0.0)
            at_once = min(
                MOST_PROGRAMS,
                MOST_WARPS // launch.warps,
                REGISTERS // (max(32, used.registers) * 32 * launch.warps),
                SHARED // max(1, used.shared + 1024),
            )
            self.compiled[key] = loop, at_once
        return self.compiled[key]

    def time(self, launch: Launch) -> Time:
        """Predict one launch."""
        moved = launch.num_bytes / launches_together(launch) / self.device.bandwidth
        steps = steps_of(launch)
        logarithms = launch.name.partition(" ")[2] in _IN_LOGARITHMS
        floor = (LOG_STEP if logarithms else LINEAR_STEP) / self.device.clock / 1e3
        if steps == 0:
            # A launch for a width of spans waits for the one before, and is one step of the algorithm.
            limit = max(moved, floor) if "width" in dict(launch.numbers) else moved
            return Time(LAUNCH_US + max(SHORTEST_US, moved), limit)
        loop, at_once = self.loop(launch)
        together = self.device.multiprocessors * at_once
        waves = math.ceil(launch.programs / together)
        on_one = min(at_once, math.ceil(launch.programs / self.device.multiprocessors))
        issued = on_one * launch.warps / SCHEDULERS * loop.num_instructions
        cycles = max(loop.cycles, issued)
        time = max(moved, waves * steps * cycles / self.device.clock / 1e3)
        return Time(LAUNCH_US + time, max(moved, steps * floor))

    def total(self, launches: list[Launch]) -> Time:
        """Predict launches that run one after the other."""
        return sum(map(self.time, launches), Time(0.0, 0.0))


@cache
def model_of(device_index: int) -> Model:
    """Return the model of a device."""
    return Model(DEVICES[device_index])


def main() -> int:
    """Write the table."""
    results = Results.here("python -m benchmarks.gpu predict", packages=["triton", "foveal-triton"])
    results = replace(results, spec=ASSUMPTIONS)
    for family in FAMILIES:
        for size in family.sizes:
            calls = {
                name: launches_of(call)
                for name, call in family.calls(size, "meta", torch.float32).items()
            }
            if "tangent" in calls:
                calls["train"] = calls["marginals"] + calls["tangent"]
            for index, device in enumerate(DEVICES):
                for name, launches in calls.items():
                    time = model_of(index).total(launches)
                    title = f"{family.name} {name} {size}, {device.name}"
                    rows = [
                        Row(name=f"{title}, predicted", value=round(time.predicted, 1), unit="us"),
                        Row(name=f"{title}, limit", value=round(time.limit, 1), unit="us"),
                    ]
                    results = results.with_rows(rows)
            results.save(OUT)
        print(f"{family.name}: predicted", flush=True)
    print(f"written to {OUT}")
    return 0
