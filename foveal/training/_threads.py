"""Choose the number of threads that torch uses: one or all, by the time of a real step.

The kernels of small models are short, and threads have to wait for each other after each kernel. On a busy machine, two
threads can take twenty times as long as one.

Several threads sum in a different order than one thread does, so the same seed gives the same weights only with the
same number of threads.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, final

import torch
from torch import Tensor, nn

# Seconds for which each candidate is measured, after one warm-up step.
_MEASURED = 0.15
_MOST_STEPS = 10
_HOPELESS = 5  # times as long as with one thread: warm-up does not explain it


class Threads(NamedTuple):
    """A number of threads and the reason for it."""

    number: int
    reason: str


def choose_threads(step: Callable[[], object], most: int | None = None) -> Threads:
    """Return the number of threads, one or `most`, with which `step` is faster. The number is not set.

    Args:
        step: The function to measure; it is called a few times.
        most: The maximum number of threads. Defaults to the number that torch uses now (OMP_NUM_THREADS, or the cores).

    Returns:
        The number of threads and the reason for it.

    Examples:
        >>> choose_threads(lambda: None, most=1)
        Threads(number=1, reason='torch has only one thread')
    """
    most = torch.get_num_threads() if most is None else most
    if most <= 1:
        return Threads(1, "torch has only one thread")
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
    """The threads of one run: set by the user, measured with the first batch, or the default of torch.

    Args:
        number: The number of threads; None leaves the choice to the measurement or to torch.
        measures: Whether to measure if no number is given.
    """

    def __init__(self, number: int | None, *, measures: bool) -> None:
        self._number, self._measures = number, measures and number is None

    def begin(self, recorded: int | None) -> None:
        """Set the given number, or the number with which a resumed run started."""
        number = recorded if self._measures else self._number
        if number is not None:
            torch.set_num_threads(number)
            self._measures = False

    def measure(self, model: nn.Module, loss: Callable[[], Tensor]) -> Threads | None:
        """Measure the forward and backward pass of the first batch and set the faster number.

        Weights, buffers and random state stay unchanged. Returns None if there is nothing to measure.
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
    """Restore the number of threads of torch on exit."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measure(step: Callable[[], object], number: int, enough: float = math.inf) -> float:
    """Return the median time of a step in seconds, or the time of the first step if it exceeds `enough`."""
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
