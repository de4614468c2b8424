"""Probes: what is measured now and then of a model in training, and how often.

A probe takes the time of some steps, so the next one is due when fifty times as long has gone by as
the last one took. It sees the model between two updates and changes neither weights nor gradients nor
what is drawn at random: the run is the same, to the bit, without it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import torch

from ...tasks import AbstractTask

# By name: single numbers, and rows of them.
Readings: TypeAlias = Mapping[str, float | list[float]]

# A task and a batch that it has just been trained on -> whatever there is to tell.
Probe: TypeAlias = Callable[[AbstractTask[Any], Any], Readings]

SHARE = 0.02  # of the time that probes take
_FIRST_GUESS = 4.0  # steps that a probe takes, until one has been timed


@final
class Probing:
    """Some probes, and when they are due.

    Args:
        probes: what to call.
        clock: seconds, from anywhere on.
    """

    def __init__(
        self, probes: Sequence[Probe], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._probes, self._clock = tuple(probes), clock
        self._since, self._first_step = clock(), 0
        self._latest: float | None = None

    def begin(self, step: int) -> None:
        """The run begins, or goes on, after so many steps: time counts from here."""
        self._since, self._first_step = self._clock(), step

    def due(self, step: int) -> bool:
        """Whether there is time for a probe after this step."""
        num_steps = step - self._first_step
        if not self._probes or num_steps < 1:
            return False
        since = self._clock() - self._since
        expected = _FIRST_GUESS * since / num_steps if self._latest is None else self._latest
        return expected <= SHARE * since

    def read(self, task: AbstractTask[Any], batch: Any) -> tuple[Readings, float]:
        """Call every probe; the seconds that it took. What they draw at random is not missed by
        anyone else.
        """
        began = self._clock()
        readings: dict[str, float | list[float]] = {}
        with torch.random.fork_rng(devices=[]):
            for probe in self._probes:
                readings |= probe(task, batch)
        self._since = self._clock()
        self._latest = self._since - began
        return readings, self._latest
