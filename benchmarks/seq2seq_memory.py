"""How does the memory of training and of search grow, and does search leak memory?

The peak is the largest size of all torch tensors during one training step or one beam search, at a base size
and at twice the batch, source or target. Linear growth is an exponent of 1, or less if some parts do
not grow. Leaks are measured from outside: the resident size of a separate process after many searches.

    python -m benchmarks.seq2seq_memory --times 10000      prints bytes
"""

import argparse
import gc
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from torch.profiler import ProfilerActivity, profile

from . import seq2seq_search, seq2seq_training
from .memory import resident_bytes
from .results import Row
from .timing import use_one_thread

ROOT = Path(__file__).parents[1]
TRAIN, SEARCH = "a training step", f"a search with a beam of {seq2seq_search.WIDTH}"
BASE = (64, 50, 24)  # batch, source, target
AXES = ("batch", "source", "target")
HIDDEN, VOCABULARY = 128, 1_000
EXPONENT_TARGET = 1.1
NUM_SEARCHES = 10_000
GROWTH_TARGET = 4.0  # MB over all searches: less than half a kilobyte each


def rows(base: Sequence[int] = BASE, num_searches: int = NUM_SEARCHES) -> Iterator[Row]:
    """Yield all memory rows."""
    base = tuple(base)
    for what in (TRAIN, SEARCH):
        least = peak_of(call_of(what, *base))
        size = f"hidden {HIDDEN}, vocabulary {VOCABULARY}"
        yield Row(name=f"memory of {what} {base}, {size}", value=least / 1e6, unit="MB")
        for axis, label in enumerate(AXES):
            doubled = tuple(2 * n if i == axis else n for i, n in enumerate(base))
            yield Row(
                name=f"memory of {what}, exponent in {label}, {base} to {doubled}",
                value=math.log2(peak_of(call_of(what, *doubled)) / least),
                unit="exponent",
                target=EXPONENT_TARGET,
                sense="<=",
            )
    yield Row(
        name=f"memory left behind by {num_searches} searches with a beam",
        value=left_behind(num_searches) / 1e6,
        unit="MB",
        target=GROWTH_TARGET,
        sense="<=",
    )


def call_of(what: str, batch: int, source: int, target: int) -> Callable[[], object]:
    """Return a call for one training step of the additive model, or for one beam search."""
    if what == TRAIN:
        sizes = seq2seq_training.Sizes(
            hidden=HIDDEN, batch=batch, source=source, target=target, vocabulary=VOCABULARY
        )
        return seq2seq_training.steps(sizes)[seq2seq_training.ADDITIVE]
    sizes = seq2seq_search.Sizes(hidden=HIDDEN, vocabulary=VOCABULARY, source=source, target=target)
    return seq2seq_search.ours(sizes, batch, seq2seq_search.WIDTH)


def peak_of(call: Callable[[], object]) -> int:
    """Return the peak size of tensors during a call, less their size before it, in bytes."""
    call()  # the first call loads libraries and fills caches
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        call()
    held = peak = 0
    outermost = (event for event in found.events() or () if event.cpu_parent is None)
    for event in sorted(outermost, key=lambda event: event.time_range.start):
        held += event.cpu_memory_usage
        peak = max(peak, held)
    return peak


def left_behind(num_searches: int) -> int:
    """Return the growth of a separate process over `num_searches` searches, in bytes."""
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.seq2seq_memory", "--times", str(num_searches)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if child.returncode != 0:
        raise RuntimeError(f"Measuring what searches leave behind failed:\n{child.stderr}")
    return int(child.stdout)


def growth(call: Callable[[], object], times: int) -> int:
    """Return the growth of the resident size from a tenth of the calls to the last call."""
    for _ in range(times // 10):
        call()
    before = resident_bytes()
    for _ in range(times - times // 10):
        call()
    return max(0, resident_bytes() - before)


def main(arguments: Sequence[str] | None = None) -> None:
    """Search many times and print the growth of the process in bytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seq2seq_memory")
    parser.add_argument("--times", type=int, default=NUM_SEARCHES)
    given = parser.parse_args(arguments)
    use_one_thread()
    print(growth(call_of(SEARCH, 1, 12, 10), given.times))


if __name__ == "__main__":
    main()
