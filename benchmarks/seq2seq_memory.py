"""How does the memory of training and of search grow, and does search leave any behind?

Every figure is of a child process (see `memory`): the peak of one training step, or of one beam
search, at a size and at twice the batch, source or target. Linear growth is an exponent of 1, or less
where something does not grow.

    python -m benchmarks.seq2seq_memory train 64 25 12      prints bytes
"""

import argparse
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from . import seq2seq_search, seq2seq_training
from .memory import peak_of, resident_bytes
from .results import Row
from .timing import use_one_thread

ROOT = Path(__file__).parents[1]
TRAIN, SEARCH, REPEAT = "train", "search", "repeat"
BASE = {TRAIN: (64, 50, 24), SEARCH: (64, 50, 24)}  # batch, source, target
AXES = ("batch", "source", "target")
HIDDEN, VOCABULARY = 128, 1_000
EXPONENT_TARGET = 1.1
NUM_SEARCHES = 10_000
GROWTH_TARGET = 4.0  # MB over all searches: less than half a kilobyte each


def rows() -> Iterator[Row]:
    """All memory rows."""
    for what, base in BASE.items():
        size = f"hidden {HIDDEN}, vocabulary {VOCABULARY}"
        least = measure(what, base)
        name = "a training step" if what == TRAIN else f"a search with a beam of {_width()}"
        yield Row(name=f"memory of {name} {base}, {size}", value=least / 1e6, unit="MB")
        for axis, label in enumerate(AXES):
            doubled = tuple(2 * n if i == axis else n for i, n in enumerate(base))
            yield Row(
                name=f"memory of {name}, exponent in {label}, {base} to {doubled}",
                value=math.log2(measure(what, doubled) / least),
                unit="exponent",
                target=EXPONENT_TARGET,
                sense="<=",
            )
    yield Row(
        name=f"memory left behind by {NUM_SEARCHES} searches with a beam of {_width()}",
        value=measure(REPEAT, (1, 12, 10)) / 1e6,
        unit="MB",
        target=GROWTH_TARGET,
        sense="<=",
    )


def measure(what: str, size: Sequence[int]) -> int:
    """Bytes, as a child process finds them."""
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.seq2seq_memory", what, *map(str, size)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if child.returncode != 0:
        raise RuntimeError(f"Measuring the memory of {what} at {size} failed:\n{child.stderr}")
    return int(child.stdout)


def call_of(what: str, batch: int, source: int, target: int) -> Callable[[], object]:
    """One training step of the additive model, or one beam search."""
    if what == TRAIN:
        sizes = seq2seq_training.Sizes(
            hidden=HIDDEN, batch=batch, source=source, target=target, vocabulary=VOCABULARY
        )
        return seq2seq_training.steps(sizes)[seq2seq_training.ADDITIVE]
    sizes = seq2seq_search.Sizes(hidden=HIDDEN, vocabulary=VOCABULARY, source=source, target=target)
    return seq2seq_search.ours(sizes, batch, _width())


def growth(call: Callable[[], object], times: int) -> int:
    """What the process holds after many calls beyond what it held after a tenth of them."""
    for _ in range(times // 10):
        call()
    before = resident_bytes()
    for _ in range(times - times // 10):
        call()
    return max(0, resident_bytes() - before)


def _width() -> int:
    return seq2seq_search.WIDTH


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one figure in bytes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.seq2seq_memory")
    parser.add_argument("what", choices=[TRAIN, SEARCH, REPEAT])
    parser.add_argument("size", type=int, nargs=3, metavar="n")
    parser.add_argument("--times", type=int, default=NUM_SEARCHES)
    given = parser.parse_args(arguments)
    use_one_thread()
    torch.manual_seed(0)
    call_of(given.what, 2, 3, 3)()  # loads what the first call loads
    call = call_of(given.what, *given.size)
    print(growth(call, given.times) if given.what == REPEAT else peak_of(call))


if __name__ == "__main__":
    main()
