"""How many threads torch computes with: one, or all, whichever takes a real step faster.

The kernels of small models are short, and threads have to wait for each other after each. On a machine
that is busy with something else, two threads can take twenty times as long as one.

The sums of several threads are in another order than those of one, so that the same seed gives the same
weights only with the same number of threads.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

# Seconds that each candidate is measured for, after one step to warm up.
_MEASURED = 0.15
_MOST_STEPS = 10
_HOPELESS = 5  # times as long as with one thread: warming up does not explain it


class Threads(NamedTuple):
    """A number of threads, and why it was chosen."""

    number: int
    reason: str


def choose_threads(step: Callable[[], object], most: int | None = None) -> Threads:
    """The number of threads with which `step` is faster: one, or `most`. It is not set.

    >>> choose_threads(lambda: None, most=1)
    Threads(number=1, reason='torch may use one thread only')

    Args:
        step: what is measured; it is called a few times.
        most: threads that may be used; by default those that torch uses now (OMP_NUM_THREADS, or the cores).
    """
    most = torch.get_num_threads() if most is None else most
    if most <= 1:
        return Threads(1, "torch may use one thread only")
    with threads_restored():
        alone = _measure(step, 1)
        seconds = {1: alone, most: _measure(step, most, enough=_HOPELESS * alone)}
    number = min(seconds, key=lambda candidate: seconds[candidate])
    one, all_of_them = (1000 * seconds[candidate] for candidate in (1, most))
    return Threads(
        number, f"a step takes {one:,.1f} ms with 1 thread and {all_of_them:,.1f} ms with {most}"
    )


@final
class ThreadSetting:
    """The threads of one run: given, measured with the first batch, or as torch is set.

    Args:
        number: threads to use; None leaves the choice to the measurement or to torch.
        measures: whether to measure if no number is given.
    """

    def __init__(self, number: int | None, *, measures: bool) -> None:
        self._number, self._measures = number, measures and number is None

    def begin(self, recorded: int | None) -> None:
        """Set the number that was given, or the one that a resumed run was begun with."""
        number = recorded if self._measures else self._number
        if number is not None:
            torch.set_num_threads(number)
            self._measures = False

    def measure(self, model: nn.Module, loss: Callable[[], Tensor]) -> Threads | None:
        """Measure the forward and backward pass of the first batch and set the faster number; None
        where nothing has to be measured. Weights, buffers and random numbers stay as they were.
        """
        if not self._measures:
            return None
        self._measures = False
        buffers = [buffer.detach().clone() for buffer in model.buffers()]
        with torch.random.fork_rng(devices=[]):
            chosen = choose_threads(lambda: loss().backward())
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, before in zip(model.buffers(), buffers, strict=True):
                buffer.copy_(before)
        torch.set_num_threads(chosen.number)
        return chosen


@contextmanager
def threads_restored() -> Iterator[None]:
    """Afterwards torch has as many threads as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measure(step: Callable[[], object], number: int, enough: float = math.inf) -> float:
    """The median time of a step, in seconds; that of the first, if it takes longer than `enough`."""
    torch.set_num_threads(number)
    first = _time(step)
    if first > enough:
        return first
    taken: list[float] = []
    while len(taken) < _MOST_STEPS and sum(taken) < _MEASURED:
        taken.append(_time(step))
    return sorted(taken)[len(taken) // 2]


def _time(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began
