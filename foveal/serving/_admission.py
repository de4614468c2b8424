"""Which requests are taken: those that end in time when every client gets its share of the computing.

    ahead = own backlog + sum over other clients of min( their backlog, own backlog + own request )

Under fair queueing a request waits for no more than that, whatever else is in the queue. So a client that asks
for a lot fills its own part of the queue and nobody else's.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import FovealError
from ._fair_queue import FairQueue, Ticket


class OverloadedError(FovealError, RuntimeError):
    """There is more to do than can be done in time; ask again after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(
            f"The server has more to do than it can do in time. Ask again in {self.seconds} s, or ask "
            f"for less at once."
        )


class TooLargeError(FovealError, ValueError):
    """A request that would not end before its deadline even if nothing else were asked."""


class LateError(FovealError, TimeoutError):
    """The deadline passed before there was an answer."""

    def __init__(self) -> None:
        super().__init__("The deadline passed before there was an answer. Allow more time.")


class ClosedError(FovealError, RuntimeError):
    """Nothing is taken any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueLimits:
    """How much may wait, and how much is computed at once."""

    most_seconds: float = (
        1.0  # that a request may wait, in addition to the time that it takes itself
    )
    longest: float = (
        30.0  # seconds: the latest deadline, and the longest time after which to ask again
    )
    most_waiting: int = 4096
    most_at_once: int = 64
    most_size_at_once: float = 8192.0  # places times width


def check_room(
    queue: FairQueue, tickets: Sequence[Ticket], limits: QueueLimits, *, is_known: bool
) -> None:
    """Raise unless there is room for the tickets of a request; `is_known`: their costs are measured."""
    client, number = tickets[0].client, len(tickets)
    cost = sum(ticket.cost for ticket in tickets)
    left = min(ticket.deadline for ticket in tickets) - time.monotonic()
    is_long = is_known and cost > limits.most_seconds
    if is_long and cost > left:
        raise TooLargeError(
            f"The request would take about {cost:.0f} s and has {left:.0f} s until its deadline. Send "
            f"fewer or shorter inputs in one request, or ask for fewer candidates."
        )
    wait = queue.ahead_of(client, cost)
    others = queue.num_clients - (1 if queue.num_of(client) else 0)
    is_greedy = queue.cost_of(client) > limits.most_seconds
    is_full = len(queue) + number > limits.most_waiting and queue.num_of(
        client
    ) + number > limits.most_waiting / (1 + others)
    is_long_wait = wait > limits.most_seconds + cost or (is_long and wait + cost > left)
    if is_full or is_greedy or is_long_wait:
        raise OverloadedError(min(wait, limits.longest))
