"""The queue and its batcher, without HTTP: fairness, deadlines, capacity, and faults."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from foveal.serving._admission import (
    ClosedError,
    LateError,
    OverloadedError,
    QueueLimits,
    TooLargeError,
)
from foveal.serving._batcher import Ask, Batcher, Outcome
from foveal.serving._fair_queue import FairQueue, Room, Ticket
from foveal.serving._pace import Pace, Timed

pytestmark = pytest.mark.slow

SECONDS = 30


def drained(queue: FairQueue, *, most: int = 4) -> list[list[Ticket]]:
    batches = []
    while len(queue):
        batches.append(queue.pop(0.0, room=Room(most, 1e9)).tickets)
    return batches


def test_batches_are_of_one_group_and_everything_comes_once() -> None:
    generator, queue = random.Random(0), FairQueue()
    tickets = [
        Ticket(
            generator.choice("abc"),
            n,
            generator.choice("xyz"),
            cost=generator.choice([1.0, 5.0]),
        )
        for n in range(200)
    ]
    for ticket in tickets:
        queue.push(ticket)
    batches = drained(queue)
    assert all(len({ticket.group for ticket in batch}) == 1 for batch in batches)
    assert sorted(ticket.item for batch in batches for ticket in batch) == list(range(200))
    assert queue.cost == 0
    assert queue.num_clients == 0


def test_one_who_asks_for_much_does_not_keep_others_waiting() -> None:
    queue = FairQueue()
    for n in range(100):
        queue.push(Ticket("group", n, "greedy"))
    queue.push(Ticket("group", 0, "modest"))
    first = queue.pop(0.0, room=Room(4, 1e9)).tickets
    assert "modest" in {ticket.client for ticket in first}


def test_clients_get_equal_shares_while_all_wait() -> None:
    queue = FairQueue()
    for client, number, cost in (("a", 300, 1.0), ("b", 100, 3.0), ("c", 300, 1.0)):
        for n in range(number):
            queue.push(Ticket("group", n, client, cost=cost))
    served: Counter[str] = Counter()
    for _ in range(45):
        for ticket in queue.pop(0.0, room=Room(4, 1e9)).tickets:
            served[ticket.client] += int(ticket.cost)
    assert max(served.values()) - min(served.values()) <= 6


def test_the_urgent_come_first_and_the_late_not_at_all() -> None:
    queue = FairQueue()
    for n in range(10):
        queue.push(Ticket("many", n, "a"))
    urgent, late = Ticket("other", "urgent", "b", 1.0, 11.0), Ticket("other", "late", "b", 1.0, 9.0)
    queue.push(urgent)
    queue.push(late)
    batch = queue.pop(10.0, horizon=2.0, room=Room(4, 1e9))
    assert batch.tickets == [urgent]
    assert batch.late == [late]
    assert len(queue) == 10


def test_a_batch_is_bounded_by_its_size_but_never_empty() -> None:
    queue = FairQueue()
    for cost in (50.0, 4.0, 4.0, 4.0):
        queue.push(Ticket("group", cost, str(cost), size=cost))
    sizes = []
    while len(queue):
        sizes.append([t.size for t in queue.pop(0.0, room=Room(9, 10.0)).tickets])
    assert sorted(map(sum, sizes)) == [4.0, 8.0, 50.0]


def test_those_who_gave_up_leave_nothing_behind() -> None:
    queue = FairQueue()
    kept = Ticket("group", "kept", "a")
    queue.push(kept)
    for n in range(5000):
        ticket = Ticket(n % 7, "x" * 100, f"client {n}", 1.0, 1e9)
        queue.push(ticket)
        queue.drop([ticket])
        assert ticket.item is None
    assert len(queue) == 1
    assert sum(map(len, queue._groups.values())) + len(queue._deadlines) < 4000
    assert drained(queue) == [[kept]]


def test_the_line_through_batches_is_found() -> None:
    pace = Pace()
    for cost in (8.0, 100.0, 40.0, 16.0) * 10:
        pace.saw(cost, 0.02 + 0.001 * cost)
    assert pace.base == pytest.approx(0.02)
    assert pace.slope == pytest.approx(0.001)
    alike = Pace()
    alike.saw(8.0, 0.5)
    assert alike.seconds(2.0, 16.0) == pytest.approx(1.0)


class Kept:
    """Collect outcomes as they arrive."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        self.outcomes += outcomes

    async def wait(self, number: int) -> dict[Any, Any]:
        async with asyncio.timeout(SECONDS):
            while len(self.outcomes) < number:
                await asyncio.sleep(0.001)
        return {ticket.item: answer for ticket, answer in self.outcomes}


def batcher(kept: Kept, ask: Ask, limits: QueueLimits | None = None) -> Batcher:
    return Batcher(lambda group: ask, kept, limits or QueueLimits(), lambda seen: None)


def test_one_fault_is_not_the_others() -> None:
    async def ask(items: Sequence[Any], **_: Any) -> Timed:
        if "bad" in items:
            raise ValueError("no")
        return Timed([item.upper() for item in items], 0.001)

    async def answered() -> dict[Any, Any]:
        kept = Kept()
        running = batcher(kept, ask)
        running.submit([Ticket("group", item, "a") for item in ("x", "bad", "y")])
        await running.close()
        return await kept.wait(3)

    answers = asyncio.run(answered())
    assert answers["x"] == "X"
    assert answers["y"] == "Y"
    assert isinstance(answers["bad"], ValueError)


def test_a_short_deadline_does_not_pass_the_turn_of_another_client() -> None:
    queue = FairQueue()
    for n in range(100):
        queue.push(Ticket("hasty", n, "greedy", deadline=11.0))
    queue.push(Ticket("group", "modest", "another"))
    first = [queue.pop(10.0, horizon=9.0, room=Room(1, 1e9)).tickets[0] for _ in range(3)]
    assert "another" in {ticket.client for ticket in first}


def taught(running: Batcher, **seconds: float) -> None:
    """Tell a batcher the cost of one ticket of each of these groups."""
    for group, each in seconds.items():
        running._paces.saw(group, 1.0, each)


def test_a_client_fills_its_own_part_of_the_queue_and_no_other() -> None:
    async def fill() -> None:
        go, kept = asyncio.Event(), Kept()

        async def ask(items: Sequence[Any], **_: Any) -> Timed:
            await go.wait()
            return Timed(items, 0.001)

        running = batcher(kept, ask, QueueLimits(most_seconds=1.0, most_at_once=1))
        taught(running, long=0.2, word=0.005)
        deadline = time.monotonic() + SECONDS
        accepted, refusal = 0, None
        while refusal is None and accepted < 1000:
            try:
                running.submit([Ticket("long", accepted, "greedy", deadline=deadline)])
                accepted += 1
            except OverloadedError as error:
                refusal = error
        assert refusal is not None
        assert accepted >= 4
        assert 1 <= refusal.seconds <= SECONDS
        for n in range(50):
            running.submit([Ticket("word", f"word {n}", f"another {n % 5}", deadline=deadline)])
        go.set()
        await running.close()
        assert len(await kept.wait(accepted + 50)) == accepted + 50

    asyncio.run(fill())


def test_a_request_that_cannot_end_in_time_is_refused_and_one_that_can_is_taken() -> None:
    async def ask(items: Sequence[Any], **_: Any) -> Timed:
        return Timed(items, 0.001)

    async def refused() -> None:
        kept = Kept()
        running = batcher(kept, ask, QueueLimits(most_at_once=1))
        taught(running, long=1.0)
        deadline = time.monotonic() + 30.0
        with pytest.raises(TooLargeError, match="about 60 s"):
            running.submit([Ticket("long", n, "a", deadline=deadline) for n in range(60)])
        assert not running.num_waiting
        running.submit([Ticket("long", n, "a", deadline=deadline) for n in range(20)])
        assert len(await kept.wait(20)) == 20
        await running.close()

    asyncio.run(refused())


def test_a_busy_machine_is_not_taken_for_a_slow_model() -> None:
    """A batch that waited for a busy processor, but used it only briefly, does not lower the
    capacity.
    """

    async def ask(items: Sequence[Any], **_: Any) -> Timed:
        await asyncio.sleep(0.2 if items[0] == "first" else 0.0)
        return Timed(items, 0.001)

    async def taken() -> None:
        kept = Kept()
        running = batcher(kept, ask, QueueLimits(most_seconds=0.5, most_at_once=1))
        running.submit([Ticket("group", "first", "a")])
        await kept.wait(1)
        for n in range(20):  # four seconds at the pace of the first
            running.submit([Ticket("group", n, "a")])
        await running.close()
        assert len(await kept.wait(21)) == 21

    asyncio.run(taken())


def test_a_quick_request_of_another_client_interrupts_a_long_one() -> None:
    """A long batch is running, and more tickets of the same client wait."""

    async def ordered() -> list[Any]:
        go, kept = asyncio.Event(), Kept()

        async def ask(items: Sequence[Any], *, interrupting: bool) -> Timed:
            assert interrupting == (items[0] == "word")
            if not interrupting:
                await go.wait()
            return Timed(items, 0.001)

        running = batcher(kept, ask, QueueLimits(most_at_once=1))
        taught(running, long=1.0, word=0.005)
        running.submit([Ticket("long", n, "a") for n in range(3)])
        await asyncio.sleep(0.01)
        running.submit([Ticket("word", "word", "b")])
        await kept.wait(1)
        go.set()
        await running.close()
        return [ticket.item for ticket, _ in kept.outcomes]

    assert asyncio.run(ordered()) == ["word", 0, 1, 2]


def test_a_client_does_not_interrupt_itself_with_more_of_the_same() -> None:
    """Otherwise its quick batches would take turns, and another client's quick request would wait
    for each.
    """

    async def ordered() -> list[Any]:
        go, kept, asked = asyncio.Event(), Kept(), list[Any]()

        async def ask(items: Sequence[Any], *, interrupting: bool) -> Timed:
            asked.extend(items)
            if not interrupting:
                await go.wait()
            return Timed(items, 0.05 if items[0].startswith("text") else 0.005)

        running = batcher(kept, ask, QueueLimits(most_at_once=1))
        taught(running, text=0.05, word=0.005)
        running.submit([Ticket("text", f"text {n}", "a") for n in range(3)])
        await asyncio.sleep(0.1)
        assert asked == ["text 0"]
        running.submit([Ticket("word", "word of another", "b")])
        await kept.wait(1)
        running.submit([Ticket("word", "its own word", "a")])
        await kept.wait(2)
        go.set()
        await running.close()
        return asked

    others = ["text 1", "text 2"]
    assert asyncio.run(ordered()) == ["text 0", "word of another", "its own word", *others]


def test_interrupting_takes_no_more_than_its_share() -> None:
    """A client that sends quick requests without end does not stop another client's long batch."""

    async def interrupted() -> int:
        kept = Kept()

        async def ask(items: Sequence[Any], **_: Any) -> Timed:
            seconds = 0.02 if items[0] == "word" else 0.3
            await asyncio.sleep(seconds)
            return Timed(items, seconds)

        running = batcher(kept, ask, QueueLimits(most_seconds=9.0, most_at_once=1))
        taught(running, long=0.3, word=0.02)
        running.submit([Ticket("long", "long", "a")])
        await asyncio.sleep(0)
        running.submit([Ticket("word", "word", "b") for _ in range(100)])
        await running.close()
        return [ticket.item for ticket, _ in kept.outcomes].index("long")

    # While the long batch takes its 0.3 s, the other gets 0.3 s plus `_AHEAD`: 40 of its 100.
    assert 1 <= asyncio.run(interrupted()) <= 50


def test_a_batch_that_nobody_waits_for_is_cancelled() -> None:
    async def cancelled() -> list[bool]:
        go, told = asyncio.Event(), list[bool]()

        async def ask(items: Sequence[Any], **_: Any) -> Timed:
            await go.wait()
            return Timed(items, 0.001)

        def cancel() -> None:
            told.append(True)
            go.set()

        running = Batcher(
            lambda group: ask, Kept(), QueueLimits(), lambda seen: None, cancel=cancel
        )
        tickets = [Ticket("group", n, "a") for n in range(2)]
        running.submit(tickets)
        await asyncio.sleep(0.01)
        running.drop(tickets[:1])
        assert not told
        running.drop(tickets[1:])
        await running.close()
        return told

    assert asyncio.run(cancelled()) == [True]


def test_late_and_dropped_tickets_are_not_computed() -> None:
    computed = list[Any]()

    async def answered() -> dict[Any, Any]:
        go, kept = asyncio.Event(), Kept()

        async def ask(items: Sequence[Any], **_: Any) -> Timed:
            computed.extend(items)
            if "slow" in items:
                await go.wait()
            return Timed(items, 0.001)

        running = batcher(kept, ask)
        running.submit([Ticket("first", "slow", "a")])
        dropped = Ticket("group", "dropped", "a")
        running.submit([dropped])
        running.submit([Ticket("group", "late", "a", deadline=time.monotonic())])
        running.submit([Ticket("group", "good", "a")])
        running.drop([dropped])
        go.set()
        await running.close()
        return await kept.wait(3)

    answers = asyncio.run(answered())
    assert isinstance(answers["late"], LateError)
    assert set(computed) == {"slow", "good"}


def test_what_waits_at_the_end_is_answered_and_nothing_more_is_taken() -> None:
    async def ask(items: Sequence[Any], **_: Any) -> Timed:
        return Timed(items, 0.001)

    async def ended() -> None:
        kept = Kept()
        running = batcher(kept, ask)
        running.submit([Ticket(n % 5, n, str(n % 3)) for n in range(100)])
        await running.close()
        assert len(await kept.wait(100)) == 100
        with pytest.raises(ClosedError):
            running.submit([Ticket("group", "more", "a")])

    asyncio.run(ended())
