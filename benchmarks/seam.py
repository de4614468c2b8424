"""Does the choice between C++ kernels, Triton kernels and reference passes cost time on the CPU?

    python -m benchmarks.seam --before FOLDER

FOLDER has the package of an earlier commit. Two processes, one for each package, run the same calls in turns, in
one thread. The ratio of a pair of processes is the median over rounds of the CPU time after divided by the CPU time
before. The place of code and data in memory changes it by a few percent from pair to pair, even with the same package, so
a figure is the median over new pairs, with quartiles.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from rich.progress import track

from foveal.inference import chain_log_partition, chain_marginals

from .results import Results, Row
from .timing import use_one_thread

OUT = Path("results/gpu_seam.json")
ROOT = Path(__file__).resolve().parents[1]
SIZES = ((1, 1, 2), (32, 25, 2), (32, 50, 20))
PAIRS, ROUNDS, BLOCK, MOST = 21, 25, 0.01, 1.02

# By default, the history of a process decides whether the C library returns the memory of a large tensor to the
# system, so two processes with the same code may differ. Here, both processes keep it.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}


def calls() -> Mapping[str, Callable[[], Any]]:
    """Return the calls that are measured, with and without a gradient."""
    every: dict[str, Callable[[], Any]] = {}
    for size in SIZES:
        batch, length, states = size
        torch.manual_seed(0)
        unary = torch.randn(size)
        transitions = torch.randn(batch, length - 1, states, states)
        leaf = unary.clone().requires_grad_()

        def train(given: Any = (leaf, transitions)) -> Any:
            return torch.autograd.grad(chain_marginals(*given).nodes.square().sum(), given[:1])

        plain = unary, transitions
        every[f"log_partition {size}"] = lambda given=plain: chain_log_partition(*given)
        every[f"marginals {size}"] = lambda given=plain: chain_marginals(*given)
        every[f"train {size}"] = train
    return every


def work() -> None:
    """Answer each line `name<tab>repetitions` with the CPU seconds of a call."""
    use_one_thread()
    every = calls()
    for line in sys.stdin:
        name, times = line.rstrip("\n").split("\t")
        call = every[name]
        call()
        began = time.process_time()
        for _ in range(int(times)):
            call()
        print((time.process_time() - began) / int(times), flush=True)


class Worker:
    """A process with one of the packages."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    def seconds(self, name: str, times: int) -> float:
        """Return the CPU seconds of a call."""
        self._input.write(f"{name}\t{times}\n")
        self._input.flush()
        return float(self._output.readline())


def started(folder: Path) -> "subprocess.Popen[str]":
    """Start a worker with the package in a folder, and the benchmarks of this checkout."""
    program = (
        f"import sys; sys.path[:0] = [{str(folder)!r}]; import foveal; "
        f"sys.path[0] = {str(ROOT)!r}; from benchmarks.seam import work; "
        f"assert foveal.__file__.startswith({str(folder)!r}), foveal.__file__; work()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ratio(before: Worker, after: Worker, name: str) -> float:
    """Return the ratio of a call in one pair of processes."""
    times = max(1, round(BLOCK / max(after.seconds(name, 20), 1e-7)))
    before.seconds(name, times)
    ratios = []
    for number in range(ROUNDS):
        pair = (before, after) if number % 2 else (after, before)
        taken = {worker: worker.seconds(name, times) for worker in pair}
        ratios.append(taken[after] / taken[before])
    return median(ratios)


def ratios_of_pairs(before: Path, after: Path) -> Iterator[Mapping[str, float]]:
    """Yield the ratio of each call in new pairs of processes."""
    for _ in range(PAIRS):
        with ExitStack() as stack:
            old, new = (Worker(stack.enter_context(started(each))) for each in (before, after))
            yield {name: ratio(old, new, name) for name in calls()}


def rows(pairs: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    """Yield the figure of each call."""
    for name in pairs[0]:
        ratios = [pair[name] for pair in pairs]
        low, _, high = quantiles(ratios, n=4)
        yield Row(
            name=f"chain {name}, after / before",
            value=median(ratios),
            unit="times the CPU time",
            spread=(low, high),
            target=MOST,
            sense="<=",
        )


def main() -> int:
    """Measure and write the table; return 1 if a ratio is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="a folder with the package")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    use_one_thread()
    results = Results.here("python -m benchmarks.seam", packages=["foveal-native"])
    measured = ratios_of_pairs(options.before.resolve(), ROOT)
    pairs = list(track(measured, "pairs of processes", total=PAIRS))
    results = results.with_rows(rows(pairs))
    results.save(options.out)
    for row in results.rows:
        print(f"{row.name}: {row.value:.3f}{'  MISSED' if row.misses else ''}")
    return 1 if results.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
