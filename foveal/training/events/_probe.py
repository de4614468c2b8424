"""Probes: measurements of a model during training, and their frequency.

A probe takes the time of some steps, so the next one is due after fifty times the duration of the last one. A probe
sees the model between two updates and changes neither the weights, the gradients nor the random state: the run without
it is bit-identical.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import torch

from ...tasks import AbstractTask

# By name: single numbers or lists of numbers.
Readings: TypeAlias = Mapping[str, float | list[float]]

# A function from a task and its latest training batch to measurements.
Probe: TypeAlias = Callable[[AbstractTask[Any], Any], Readings]

SHARE = 0.02  # maximum fraction of the time for probes
_FIRST_GUESS = 4.0  # duration of a probe in steps, until one has been timed


@final
class Probing:
    """A set of probes and their schedule.

    Args:
        probes: The probes to call.
        clock: A function that returns seconds from an arbitrary origin.
    """

    def __init__(
        self, probes: Sequence[Probe], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._probes, self._clock = tuple(probes), clock
        self._since, self._first_step = clock(), 0
        self._latest: float | None = None

    def begin(self, step: int) -> None:
        """Start the clock when the run starts or resumes after `step` steps."""
        self._since, self._first_step = self._clock(), step

    def due(self, step: int) -> bool:
        """Return True if there is time for a probe after this step."""
        num_steps = step - self._first_step
        if not self._probes or num_steps < 1:
            return False
        since = self._clock() - self._since
        expected = _FIRST_GUESS * since / num_steps if self._latest is None else self._latest
        return expected <= SHARE * since

    def read(self, task: AbstractTask[Any], batch: Any) -> tuple[Readings, float]:
        """Call every probe and return the measurements and the seconds taken. The random state is preserved."""
        began = self._clock()
        readings: dict[str, float | list[float]] = {}
        with torch.random.fork_rng(devices=[]):
            for probe in self._probes:
                readings |= probe(task, batch)
        self._since = self._clock()
        self._latest = self._since - began
        return readings, self._latest
