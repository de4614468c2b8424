"""Admission control: accept a request if it ends in time while every client gets its fair share of computing.

    ahead = own backlog + sum over other clients of min( their backlog, own backlog + own request )

Under fair queueing this bounds the waiting time of a request, independent of the rest of the queue. A client
with many requests therefore fills only its own part of the queue.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import FovealError
from ._fair_queue import FairQueue, Ticket


class OverloadedError(FovealError, RuntimeError):
    """Raised when the backlog is too long; contains the seconds after which to retry."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(
            f"The server is overloaded. Retry in {self.seconds} s, or send less in one request."
        )


class TooLargeError(FovealError, ValueError):
    """Raised for a request that would miss its deadline even on an idle server."""


class LateError(FovealError, TimeoutError):
    """Raised when the deadline passes before there is an answer."""

    def __init__(self) -> None:
        super().__init__("The deadline passed before the answer was ready. Allow more time.")


class ClosedError(FovealError, RuntimeError):
    """Raised when the queue is closed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueLimits:
    """Limits of the queue and of a batch."""

    most_seconds: float = 1.0  # waiting time of a request, in addition to its computing time
    longest: float = 30.0  # seconds: the latest deadline, and the longest retry delay
    most_waiting: int = 4096
    most_at_once: int = 64
    most_size_at_once: float = 8192.0  # positions times width


def check_room(
    queue: FairQueue, tickets: Sequence[Ticket], limits: QueueLimits, *, is_known: bool
) -> None:
    """Raise an error unless there is room for the tickets of a request; `is_known`: their costs are measured."""
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
