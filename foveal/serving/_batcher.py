"""The batcher: answers tickets in batches, and rejects requests that would wait too long.

    submit -> fair queue -> batch of one group -> ask -> delivered

A batch begins as soon as the previous one is answered, with all waiting tickets of its group: one ticket at
low load, more at high load. The batcher never waits for a batch to fill.

A batch of long texts may take seconds, and a short request of another client must not wait for it. A batch
that is expected to be quick therefore interrupts a long one, as soon as its client's turn has come: the long
batch is suspended and resumes afterwards. The expected time of a batch comes from earlier batches.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

from ._admission import ClosedError, LateError, QueueLimits, check_room
from ._fair_queue import ANY, FairQueue, Room, Ticket
from ._pace import Paces, Timed

QUICK = 0.1  # seconds: batches that are expected to take no longer may interrupt others
# The same limit, in seconds, for a batch of the interrupted client: while it runs, no other client can interrupt. A
# client that sends many texts must not interrupt itself and delay others at every turn.
_BRIEF = 0.02
# Seconds that a batch must still need before an interruption pays off: it is better to wait for the rest of a
# short batch, as the next batch of a group can hold more.
_WORTH = 0.015
# A kind of batch without measurements counts as quick up to this size.
_SMALL = 512.0
# Seconds of virtual time that an interrupting client may be ahead of the interrupted one.
_AHEAD = 0.5
_TICK = 0.02  # seconds between two checks while a ticket waits for its turn to interrupt


@runtime_checkable
class Ask(Protocol):
    """A function that answers the items of one group, in one batch."""

    async def __call__(self, items: Sequence[Any], *, interrupting: bool) -> Timed:
        """Return an answer to each item, in order; the batch may interrupt another one."""
        ...


class Outcome(NamedTuple):
    """The answer to a ticket, or an error."""

    ticket: Ticket
    answer: Any


class Seen(NamedTuple):
    """An answered batch, for the metrics."""

    group: Any
    size: int
    seconds: float


@final
@dataclass(eq=False, slots=True)
class _UnderWay:
    """A running batch."""

    tickets: list[Ticket]
    expected: float  # seconds
    began: float
    interrupted: float = 0.0  # seconds that it was suspended

    def own_seconds(self, now: float) -> float:
        return now - self.began - self.interrupted

    @property
    def is_unwanted(self) -> bool:
        return all(ticket.state == "dropped" for ticket in self.tickets)


@final
class Batcher:
    """A task of the current event loop that takes tickets and delivers their outcomes.

    Args:
        ask: Returns the function that answers a batch, for the group of a ticket.
        deliver: Receives the outcomes of every batch.
        limits: The limits of the queue.
        seen: Receives every answered batch.
        kind: Returns, for a group, a key that groups of equal speed share.
        cancel: Cancels the running batch when nobody waits for it any more.
    """

    def __init__(
        self,
        ask: Callable[[Any], Ask],
        deliver: Callable[[Sequence[Outcome]], None],
        limits: QueueLimits,
        seen: Callable[[Seen], None],
        *,
        kind: Callable[[Any], Hashable] = lambda group: group,
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask, self._deliver, self._limits, self._seen = ask, deliver, limits, seen
        self._kind, self._cancel = kind, cancel
        self._queue, self._wake = FairQueue(), asyncio.Event()
        self._room = Room(limits.most_at_once, limits.most_size_at_once)
        self._paces = Paces(most=limits.most_at_once, most_size=limits.most_size_at_once)
        self._is_open, self._batch_seconds = True, 0.0
        self._main: _UnderWay | None = None
        self._between: _UnderWay | None = None  # interrupts the main one
        self._tasks = set[asyncio.Task[None]]()
        self._running = asyncio.create_task(self._run())

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Wait for the answers to all of these tickets, which belong to one client; raises an error if one fails."""
        if not self._is_open:
            raise ClosedError("The server is shutting down and accepts no more requests.")
        kinds = [self._kind(ticket.group) for ticket in tickets]
        for ticket, kind in zip(tickets, kinds, strict=True):
            ticket.cost = self._paces.item(kind, ticket.size)
        check_room(
            self._queue, tickets, self._limits, is_known=all(map(self._paces.knows, set(kinds)))
        )
        for ticket in tickets:
            self._queue.push(ticket)
        self._wake.set()

    def drop(self, tickets: Sequence[Ticket]) -> None:
        """Cancel tickets that nobody waits for: waiting ones are never computed, and a running batch with no other
        tickets is cancelled.
        """
        self._queue.drop(tickets)
        for ticket in tickets:
            ticket.state = "dropped"
        if self._main is not None and self._main.is_unwanted:
            self._cancel()

    @property
    def num_waiting(self) -> int:
        """Return the number of waiting tickets."""
        return len(self._queue)

    async def close(self) -> None:
        """Answer all waiting tickets, then end."""
        self._is_open = False
        self._wake.set()
        await self._running

    async def _run(self) -> None:
        while self._is_open or len(self._queue) or self._main or self._between:
            self._wake.clear()
            self._begin()
            # A waiting ticket's turn may come without any other event.
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK if len(self._queue) else None):
                    await self._wake.wait()

    def _begin(self) -> None:
        """Start every batch that can start now."""
        now = time.monotonic()
        if self._main is None:
            tickets = self._popped(now, self._room)
            if tickets:
                self._main = self._started(tickets, now)
            elif not len(self._queue):
                self._queue.forget()
        elif self._between is None and len(self._queue) and self._is_worth_it(self._main, now):
            start = min(ticket.start for ticket in self._main.tickets)
            until = start + self._main.own_seconds(now) + _AHEAD
            clients = {ticket.client for ticket in self._main.tickets}
            room = self._room._replace(
                until=until,
                fits=lambda ticket: self._is_quick(
                    ticket, _BRIEF if ticket.client in clients else QUICK
                ),
            )
            tickets = self._popped(now, room)
            if tickets:
                self._between = self._started(tickets, now, interrupts=True)

    def _is_worth_it(self, main: _UnderWay, now: float) -> bool:
        taken = main.own_seconds(now)
        return main.expected - taken > _WORTH or taken > main.expected + _WORTH

    def _is_quick(self, ticket: Ticket, most: float) -> bool:
        kind = self._kind(ticket.group)
        if not self._paces.knows(kind):
            return ticket.size <= _SMALL
        return self._paces.batch(kind, ticket.size) <= most

    def _popped(self, now: float, room: Room = ANY) -> list[Ticket]:
        batch = self._queue.pop(now, horizon=3 * self._batch_seconds, room=room)
        if batch.late:
            late = LateError()
            self._deliver([Outcome(ticket, late) for ticket in batch.late])
        return batch.tickets

    def _started(self, tickets: list[Ticket], now: float, *, interrupts: bool = False) -> _UnderWay:
        size = sum(ticket.size for ticket in tickets)
        expected = self._paces.batch(self._kind(tickets[0].group), size)
        batch = _UnderWay(tickets, expected, now)
        task = asyncio.create_task(self._compute(batch, interrupts=interrupts))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return batch

    async def _compute(self, batch: _UnderWay, *, interrupts: bool) -> None:
        tickets = batch.tickets
        try:
            outcomes, cost = await self._answered(tickets, interrupts=interrupts)
            seconds = batch.own_seconds(time.monotonic())
            if not batch.is_unwanted:  # a cancelled batch gives no measurement of its duration
                size = sum(ticket.size for ticket in tickets)
                self._paces.saw(self._kind(tickets[0].group), size, cost)
                self._batch_seconds += 0.1 * (seconds - self._batch_seconds)
                self._seen(Seen(tickets[0].group, len(tickets), seconds))
            self._deliver(outcomes)
        finally:
            if interrupts:
                self._between = None
                if self._main is not None:
                    self._main.interrupted += time.monotonic() - batch.began
            else:
                self._main = None
            self._wake.set()

    async def _answered(self, tickets: list[Ticket], *, interrupts: bool) -> Timed:
        """Return the outcome of each ticket."""
        ask = self._ask(tickets[0].group)
        answers, seconds = await _tried(ask, tickets, interrupts=interrupts)
        first = answers[0]
        if len(tickets) > 1 and isinstance(first, Exception) and not isinstance(first, ClosedError):
            # One item is at fault: answered one by one, the others succeed.
            tickets, together, answers = [], tickets, []
            for ticket in together:
                if ticket.state != "dropped":
                    (answer,), more = await _tried(ask, [ticket], interrupts=interrupts)
                    tickets.append(ticket)
                    answers.append(answer)
                    seconds += more
        return Timed(list(map(Outcome, tickets, answers)), seconds)


async def _tried(ask: Ask, tickets: Sequence[Ticket], *, interrupts: bool) -> Timed:
    """Return the answers, or the same error for each item with the elapsed time as its cost."""
    began = time.monotonic()
    try:
        return await ask([ticket.item for ticket in tickets], interrupting=interrupts)
    except Exception as error:  # any error: other batches continue, and the client gets the error
        return Timed([error] * len(tickets), time.monotonic() - began)
