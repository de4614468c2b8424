"""How many times longer does one call take than another, on a machine that others use too?

All candidates run in one process and one thread, in rounds; in each round each candidate runs a
block of calls, and its time is divided by the reference's time of that same round, so that what
slows the machine for longer than a round slows both. Time is processor time of this process: for
one thread that computes it is the time on the wall, less what the scheduler gives to others. A
block counts as its median call; the figure is the median of the rounds' ratios, its spread their
minimum and maximum.
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
        """The median ratio to the reference."""
        return median(self.ratios)

    @property
    def ratio_spread(self) -> tuple[float, float]:
        """The lowest and the highest ratio of any round."""
        return min(self.ratios), max(self.ratios)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long to measure.

    A candidate runs in every round until it has used up `budget` seconds, but never in fewer than
    `least_rounds`: a peer that takes half a minute a call is called `least_rounds` times and once
    to warm up, and no more. A short call is made for `warm_up` seconds first, and then in blocks
    of `block` seconds.
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
        candidates: a name and a call without arguments each; what it returns is dropped.
        reference: the name of the candidate that all ratios are taken to. It runs in every round.
        plan: how many rounds, and how long.
        clock: seconds; another than the real one only in tests.

    Returns:
        One timing per candidate. The reference's ratios are all 1.
    """
    plan = plan or Plan()
    gc.collect()
    gc.freeze()  # so that collecting between blocks looks at what the candidates left, no more
    try:
        seconds = _run_rounds(candidates, reference, plan, clock)
    finally:
        gc.unfreeze()
    base = seconds[reference]
    return {
        name: Timing(
            seconds=tuple(taken),
            # a candidate leaves for good, so its rounds are the first ones of the reference
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
    """Seconds a call, one per round that the candidate ran in."""
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
    """Seconds of the median call of a block, the garbage collector out of the way.

    Before a block of many calls one more is made: what ran before has left its own data in cache.
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
