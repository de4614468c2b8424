"""Checks the kernels on a GPU, and then measures them against the reference passes and other libraries.

    python -m benchmarks.gpu

The figures are `results/gpu_measured.json`. First, every result is compared with the reference passes in
float64 on the CPU; if a law does not hold, nothing is measured. A time is wall-clock time of a call with its
wait for the GPU, so it includes launches. Libraries that are not installed, or do not run on a GPU, are left out.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

import torch

from foveal.inference import _triton

from ..alignment_cases import alignments, ctc
from ..cases import US, Call, Case, Size
from ..chain_cases import chain_edges, chain_unary, semi_markov
from ..peers import PeerMissingError
from ..results import Results, Row
from ..timing import Plan, Timing, compare
from ..tree_cases import projective_trees, span_trees
from .cases import FAMILIES
from .laws import LAWS, SIZES, law_rows, without_kernels

OUT = Path("results/gpu_measured.json")
REFERENCE = "reference passes"
# The names of the distribution, in the builds of torch for CUDA and for ROCm.
_TRITONS = ("triton", "triton-rocm", "pytorch-triton-rocm", "pytorch-triton")
CASES: dict[str, tuple[Callable[[Size], Case], ...]] = {
    "chain": (chain_edges, chain_unary),
    "alignment": (alignments,),
    "CTC": (ctc,),
    "projective tree": (projective_trees,),
    "span tree": (span_trees,),
    "semi-Markov": (semi_markov,),
}
PLAN = Plan(rounds=15, budget=3.0, block=0.02, warm_up=0.3)


def obstacle(device: torch.device) -> str | None:
    """Return why the kernels cannot be measured on a device and what to do, or None."""
    advice = (
        "Run it on a machine with a GPU, with a build of torch for CUDA or ROCm "
        "(https://pytorch.org/get-started) and the kernels (pip install ./gpu). Without a GPU, "
        "`python -m benchmarks.gpu compile` and `python -m benchmarks.gpu predict` work."
    )
    if device.type == "cuda" and not torch.cuda.is_available():
        return (
            f"benchmarks.gpu: expected a GPU that torch can use, "
            f"got torch {torch.__version__}, which finds none. {advice}"
        )
    if not _triton.serves(torch.zeros(1, device=device)):
        return (
            f"benchmarks.gpu: expected Foveal to use the Triton kernels on {device}, got the reference "
            f"passes: foveal-triton is not installed, or FOVEAL_KERNELS=pure is set. {advice}"
        )
    return None


def _waiting(call: Call, device: torch.device) -> Call:
    """Return a call that waits for the device."""

    def run() -> None:
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return run


def _by_reference(call: Call) -> Call:
    """Return a call that uses the reference passes."""

    def run() -> object:
        with without_kernels():
            return call()

    return run


def _running(calls: Mapping[str, Call], title: str) -> dict[str, Call]:
    """Return the calls that run on the device; say which ones do not."""
    running = {}
    for name, call in calls.items():
        try:
            call()
        except Exception as error:
            if name in (US, REFERENCE):
                raise
            print(f"{title}: {name} is left out: {str(error).partition(chr(10))[0]}", flush=True)
        else:
            running[name] = call
    return running


def _rows(title: str, timings: Mapping[str, Timing]) -> Iterator[Row]:
    for name, timing in timings.items():
        times = [1e6 * seconds for seconds in timing.seconds]
        if name == US:
            median = sorted(times)[len(times) // 2]
            yield Row(
                name=f"{title}, kernels", value=median, unit="us", spread=(min(times), max(times))
            )
        else:
            target = 1.0 if name == REFERENCE else None
            yield Row(
                name=f"{title} vs {name}",
                value=timing.ratio,
                unit="x faster",
                spread=timing.ratio_spread,
                target=target,
                sense=None if target is None else ">=",
            )


def speed_rows(family: str, size: Size, device: torch.device, plan: Plan = PLAN) -> Iterator[Row]:
    """Yield the time of each operation by the kernels, and how many times longer others take."""
    for number, build in enumerate(CASES[family]):
        try:
            with device:
                operations = build(size).operations
        except PeerMissingError as error:
            print(f"{family} {size}: a peer is left out: {error}", flush=True)
            continue
        kind = f"{family}, shared" if number else family
        for what, calls in operations.items():
            title = f"{kind} {what} {size}"
            every = {**calls, REFERENCE: _by_reference(calls[US])}
            candidates = {name: _waiting(call, device) for name, call in every.items()}
            running = _running(candidates, title)
            yield from _rows(
                title, compare(running, reference=US, plan=plan, clock=time.perf_counter)
            )


def _versions() -> list[str]:
    installed = {one.metadata["Name"] for one in metadata.distributions()}
    return [next(name for name in _TRITONS if name in installed), "foveal-triton"]


def main() -> int:
    """Check, measure and write the table; return 1 if a law does not hold, and 2 without a GPU."""
    device = torch.device("cuda")
    if (text := obstacle(device)) is not None:
        print(text, file=sys.stderr)
        return 2
    results = Results.here("python -m benchmarks.gpu", packages=_versions(), device=device)
    for family in LAWS:
        dtypes = (torch.float32, torch.float64)
        results = results.with_rows(law_rows(family, SIZES[family], device, dtypes))
        print(f"{family}: laws checked", flush=True)
    results.save(OUT)
    if broken := results.missed():
        for row in broken:
            print(f"broken law: {row.name}: {row.value:g}, at most {row.target:g}", file=sys.stderr)
        return 1
    for family in FAMILIES:
        for size in family.sizes:
            results = results.with_rows(speed_rows(family.name, size, device))
            results.save(OUT)
            print(f"{family.name} {size}: measured", flush=True)
    print(f"written to {OUT}")
    return 0
