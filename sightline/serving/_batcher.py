"""The batcher: it has answered what waits, a batch at a time, and never more than can wait.

    submit -> fair queue -> batch of one group -> ask -> delivered

A batch begins as soon as the one before it is answered, with all of its group that waits: alone when little
is asked, and the larger the more there is. No time is spent waiting for company. How long the queue would
take is known from the batches before, and what would wait too long is refused at once, before it costs
memory.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final, runtime_checkable

from ..errors import SightlineError
from ._fair_queue import FairQueue, Ticket
from ._pace import Pace


class OverloadedError(SightlineError, RuntimeError):
    """There is more to do than can be done in time; come back after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(
            f"The server has more to do than it can do in time. Ask again in {self.seconds} s, or less "
            f"at once."
        )


class LateError(SightlineError, TimeoutError):
    """The deadline passed before there was an answer."""


class ClosedError(SightlineError, RuntimeError):
    """Nothing is taken any more."""


@runtime_checkable
class Ask(Protocol):
    """What answers the items of one group, in one batch."""

    async def __call__(self, items: Sequence[Any]) -> Sequence[Any]:
        """An answer to each, in their order."""
        ...


class Outcome(NamedTuple):
    """What became of a ticket: an answer, or why there is none."""

    ticket: Ticket
    answer: Any


class Seen(NamedTuple):
    """A batch that has been answered, to be counted."""

    group: Any
    size: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueLimits:
    """How much may wait, and how much is done at once."""

    most_seconds: float = 1.0  # of work that waits
    most_waiting: int = 4096
    most_at_once: int = 64
    most_cost_at_once: float = 8192.0  # places


@final
class Batcher:
    """A task of the event loop it is made in, which is given tickets and hands out their outcomes.

    Args:
        ask: by the group of a ticket, what answers a batch of it.
        deliver: is given the outcomes of every batch.
        limits: of the queue.
        seen: is told of every batch.
    """

    def __init__(
        self,
        ask: Callable[[Any], Ask],
        deliver: Callable[[Sequence[Outcome]], None],
        limits: QueueLimits,
        seen: Callable[[Seen], None],
    ) -> None:
        self._ask, self._deliver, self._limits, self._seen = ask, deliver, limits, seen
        self._queue, self._has_more = FairQueue(), asyncio.Event()
        self._is_open = True
        self._pace, self._batch_seconds = Pace(), 0.0
        self._running = asyncio.create_task(self._run())

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Wait for answers to all of these, which are of one client; or to none, with an error."""
        cost = sum(ticket.cost for ticket in tickets)
        if not self._is_open:
            raise ClosedError("The server is about to end, and takes nothing more.")
        self._admit(tickets[0].client, len(tickets), cost)
        for ticket in tickets:
            self._queue.push(ticket)
        self._has_more.set()

    def drop(self, tickets: Sequence[Ticket]) -> None:
        """Nobody waits for these any more; those not begun yet are never computed."""
        self._queue.drop(tickets)

    @property
    def num_waiting(self) -> int:
        """How many tickets wait."""
        return len(self._queue)

    async def close(self) -> None:
        """Answer what waits, then end."""
        self._is_open = False
        self._has_more.set()
        await self._running

    def _admit(self, client: str, number: int, cost: float) -> None:
        """Raise if there is no room. One client gets at most two thirds of it, and the more wait,
        the less each: some is always left for one more.
        """
        queue, most = self._queue, self._limits.most_seconds
        if not len(queue):
            return  # however much it is, nothing else waits for it
        own, waiting = queue.cost_of(client), len(queue)
        seconds = self._seconds(waiting + number, queue.cost + cost)
        others = queue.num_clients - (1 if own else 0)
        share = seconds * (own + cost) / (queue.cost + cost)
        if (
            seconds > most
            or share > most / (1.5 + others)
            or waiting + number > self._limits.most_waiting
        ):
            raise OverloadedError(self._seconds(waiting, queue.cost))

    def _seconds(self, waiting: int, cost: float) -> float:
        """How long what waits would take."""
        num_batches = self._queue.num_groups + waiting / self._limits.most_at_once
        return self._pace.seconds(num_batches, cost)

    async def _run(self) -> None:
        while self._is_open or len(self._queue):
            if not len(self._queue):
                self._has_more.clear()
                await self._has_more.wait()
                continue
            batch = self._queue.pop(
                time.monotonic(),
                horizon=3 * self._batch_seconds,
                most=self._limits.most_at_once,
                most_cost=self._limits.most_cost_at_once,
            )
            if batch.late:
                late = LateError("The deadline passed before there was an answer. Give more time.")
                self._deliver([Outcome(ticket, late) for ticket in batch.late])
            if batch.tickets:
                self._deliver(await self._answered(batch.tickets))

    async def _answered(self, tickets: list[Ticket]) -> list[Outcome]:
        group, began = tickets[0].group, time.monotonic()
        ask = self._ask(group)
        answers = await _tried(ask, tickets)
        if len(tickets) > 1 and isinstance(answers[0], Exception):
            # One of them is at fault: alone, the others are answered all the same.
            answers = [answer for ticket in tickets for answer in await _tried(ask, [ticket])]
        seconds = time.monotonic() - began
        cost = sum(ticket.cost for ticket in tickets)
        self._pace.saw(cost, seconds)
        self._batch_seconds += 0.1 * (seconds - self._batch_seconds)
        self._seen(Seen(group, len(tickets), seconds))
        return list(map(Outcome, tickets, answers))


async def _tried(ask: Ask, tickets: Sequence[Ticket]) -> Sequence[Any]:
    """Answers, or the same error for each."""
    try:
        return await ask([ticket.item for ticket in tickets])
    except Exception as error:  # whatever it is, the others go on, and whoever asked is told
        return [error] * len(tickets)
