"""Interleaved timing, with a clock that the candidates advance."""

from collections.abc import Callable

import pytest

from benchmarks.timing import Plan, compare

pytestmark = pytest.mark.slow


class Clock:
    """A clock that advances only when work is done."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def work(self, name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.calls.append(name)
            self.now += seconds

        return call


def test_ratios_are_to_the_reference() -> None:
    clock = Clock()
    timings = compare(
        {"fast": clock.work("fast", 0.004), "slow": clock.work("slow", 0.010)},
        reference="fast",
        clock=clock,
    )
    assert abs(timings["slow"].ratio - 2.5) < 1e-9
    assert abs(timings["fast"].ratio - 1.0) < 1e-9
    assert len(timings["fast"].ratios) == len(timings["slow"].ratios) == Plan().rounds
    assert max(abs(s - 0.004) for s in timings["fast"].seconds) < 1e-9


def test_a_short_call_is_warmed_up_and_then_made_in_blocks() -> None:
    clock = Clock()
    plan = Plan(rounds=1, warm_up=0.0625, block=0.0390625)
    compare({"short": clock.work("short", 0.0078125)}, reference="short", plan=plan, clock=clock)
    assert len(clock.calls) == 8 + 1 + 5  # the planned calls, and one before the block


def test_rounds_are_interleaved() -> None:
    clock = Clock()
    compare(
        {"a": clock.work("a", 1.0), "b": clock.work("b", 1.0)},
        reference="a",
        plan=Plan(rounds=2, warm_up=0.0),
        clock=clock,
    )
    assert clock.calls == ["a", "b", "a", "b", "b", "a"]


def test_drift_of_the_machine_cancels() -> None:
    clock = Clock()

    def drifting(seconds: float) -> Callable[[], None]:
        def call() -> None:
            clock.now += seconds * (1 + clock.now)  # everything slows down over time

        return call

    timings = compare({"a": drifting(0.05), "b": drifting(0.1)}, reference="a", clock=clock)
    assert timings["a"].seconds[-1] > 1.5 * timings["a"].seconds[0]
    assert 1.7 < timings["b"].ratio < 2.3
    low, high = timings["b"].ratio_spread
    assert low <= timings["b"].ratio <= high


def test_a_very_slow_peer_is_called_few_times_and_the_reference_in_every_round() -> None:
    clock = Clock()
    timings = compare(
        {"ours": clock.work("ours", 0.1), "theirs": clock.work("theirs", 30.0)},
        reference="ours",
        plan=Plan(rounds=7, least_rounds=2, budget=10.0),
        clock=clock,
    )
    assert clock.calls.count("theirs") == 3  # one to warm up, two measured
    assert len(timings["theirs"].ratios) == 2
    assert len(timings["ours"].seconds) == 7


def test_a_candidate_stops_when_its_budget_is_used_up() -> None:
    clock = Clock()
    timings = compare(
        {"ours": clock.work("ours", 0.1), "theirs": clock.work("theirs", 3.0)},
        reference="ours",
        plan=Plan(rounds=7, least_rounds=2, budget=10.0),
        clock=clock,
    )
    assert len(timings["theirs"].seconds) == 4
