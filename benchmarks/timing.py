"""How many times longer does one call take than another, on a shared machine?

All candidates run in one process and one thread, in rounds. In each round, each candidate runs a block of
calls, and its time is divided by the reference's time in the same round: a slowdown of the machine that lasts
longer than a round affects both. Time is CPU time of this process: for one busy thread, wall-clock time
less the time that the scheduler gives to other processes. The time of a block is its median call; the figure
is the median of the ratios over rounds, and the spread is their minimum and maximum.
"""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import torch


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one candidate: seconds per call and the ratio to the reference, for each round."""

    seconds: tuple[float, ...]
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Return the median ratio to the reference."""
        return median(self.ratios)

    @property
    def ratio_spread(self) -> tuple[float, float]:
        """Return the lowest and the highest ratio over rounds."""
        return min(self.ratios), max(self.ratios)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long to measure.

    A candidate runs in every round until it has used `budget` seconds, but in at least `least_rounds` rounds:
    a peer that takes half a minute per call is called `least_rounds` times and once to warm up. A short call
    is repeated for `warm_up` seconds first, and then in blocks of `block` seconds.
    """

    rounds: int = 25
    least_rounds: int = 2
    budget: float = 10.0
    block: float = 0.02
    warm_up: float = 0.5


def use_one_thread() -> None:
    """Keep torch to one thread; call it once, before anything is measured."""
    torch.set_num_threads(1)


def compare(
    candidates: Mapping[str, Callable[[], object]],
    *,
    reference: str,
    plan: Plan | None = None,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Timing]:
    """Time all candidates against the reference, interleaved.

    Args:
        candidates: names and calls without arguments; return values are ignored.
        reference: the name of the candidate in the denominator of all ratios. It runs in every round.
        plan: the number and the length of rounds.
        clock: returns seconds; tests pass another clock.

    Returns:
        One timing per candidate. The reference's ratios are all 1.
    """
    plan = plan or Plan()
    gc.collect()
    gc.freeze()  # collections between blocks then scan only objects of the candidates
    try:
        seconds = _run_rounds(candidates, reference, plan, clock)
    finally:
        gc.unfreeze()
    base = seconds[reference]
    return {
        name: Timing(
            seconds=tuple(taken),
            # a candidate that stops does not return, so its rounds are the first ones of the reference
            ratios=tuple(own / ref for own, ref in zip(taken, base, strict=False)),
        )
        for name, taken in seconds.items()
    }


def _run_rounds(
    candidates: Mapping[str, Callable[[], object]],
    reference: str,
    plan: Plan,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    """Return the seconds per call, one number for each round that the candidate ran in."""
    calls = {name: _calibrate(call, plan, clock) for name, call in candidates.items()}
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(plan.rounds):
        order = list(candidates)[:: 1 if number % 2 == 0 else -1]
        for name in order:
            used = sum(seconds[name]) * calls[name]
            exhausted = number >= plan.least_rounds and used >= plan.budget
            if name == reference or not exhausted:
                seconds[name].append(_time_block(candidates[name], calls[name], clock))
    return seconds


def _calibrate(call: Callable[[], object], plan: Plan, clock: Callable[[], float]) -> int:
    """Warm up and choose how many calls make one block.

    A process is slow at first, and not only in its first call: it imports, specializes bytecode,
    and grows its heap.
    """
    end = clock() + plan.warm_up
    taken = _time_block(call, 1, clock)
    while clock() < end:
        taken = _time_block(call, 1, clock)
    return max(1, round(plan.block / max(taken, 1e-9)))


def _time_block(call: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    """Return the seconds of the median call of a block, with garbage collection disabled.

    A block of many calls starts with an untimed call, because the previous candidate has filled the cache.
    """
    gc.collect()
    gc.disable()
    try:
        if times > 1:
            call()
        marks = [clock()]
        for _ in range(times):
            call()
            marks.append(clock())
    finally:
        gc.enable()
    return median(end - start for start, end in pairwise(marks))
