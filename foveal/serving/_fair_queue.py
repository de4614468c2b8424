"""A queue of waiting tickets, which is fair between clients and forms batches of one group.

Start-time fair queueing (Goyal et al. 1996): each ticket is stamped with a virtual time,

    start  = max( clock, finish of the client's last ticket ),   finish = start + cost

and the smallest start is served first; the clock is the start of the ticket served last. Costs are estimated
seconds of computing. A client that sends a thousand inputs at once is stamped far into the future, and a
client that sends one input is served before most of them. Only tickets of one group (the same model, search
settings and size class) go into one batch.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NamedTuple, final

# Entries of dropped tickets that may stay in the heaps, in addition to one for each live ticket.
_MOST_STALE = 1000


@final
@dataclass(eq=False, slots=True)
class Ticket:
    """One input that waits for its answer."""

    group: Hashable
    item: Any
    client: str
    size: float = 1.0  # size in a batch: positions of the input times the beam size
    deadline: float = float("inf")  # on the clock of `time.monotonic`
    asked: Any = None  # its request, for the receiver of the outcome
    cost: float = 1.0  # estimated seconds
    start: float = 0.0  # the virtual start time
    state: Literal["waiting", "taken", "dropped"] = "waiting"


class Batch(NamedTuple):
    """The tickets to compute next, and the tickets whose deadline has passed."""

    tickets: list[Ticket]
    late: list[Ticket]


class Room(NamedTuple):
    """The limits of a batch."""

    most: int = 64  # tickets
    most_size: float = 8192.0  # a single ticket may exceed it
    until: float = float("inf")  # the largest start
    fits: Callable[[Ticket], bool] = lambda ticket: True


ANY = Room()


@final
class FairQueue:
    """The waiting tickets. Not thread-safe: only the event loop uses it."""

    def __init__(self) -> None:
        self.cost = 0.0
        self._waiting: Counter[str] = Counter()  # tickets of each client
        self._costs = defaultdict[str, float](float)
        self._groups: dict[Hashable, list[tuple[float, int, Ticket]]] = {}
        self._deadlines: list[tuple[float, int, Ticket]] = []
        self._numbers, self._stale = count(), 0
        self._clock, self._finish = 0.0, dict[str, float]()

    def __len__(self) -> int:
        return self._waiting.total()

    @property
    def num_clients(self) -> int:
        """Return the number of clients with waiting tickets."""
        return len(self._waiting)

    def num_of(self, client: str) -> int:
        """Return the number of waiting tickets of a client."""
        return self._waiting.get(client, 0)

    def cost_of(self, client: str) -> float:
        """Return the total cost of the waiting tickets of a client."""
        return self._costs.get(client, 0.0)

    def ahead_of(self, client: str, cost: float) -> float:
        """Return the cost that is served before the last of a client's new tickets: the client's own tickets and,
        for every other client, at most the same cost.
        """
        own = self.cost_of(client)
        others = (backlog for name, backlog in self._costs.items() if name != client)
        return own + sum(min(backlog, own + cost) for backlog in others)

    def push(self, ticket: Ticket) -> None:
        """Add tickets to the queue."""
        ticket.start = max(self._clock, self._finish.get(ticket.client, 0.0))
        self._finish[ticket.client] = ticket.start + ticket.cost
        number = next(self._numbers)
        heapq.heappush(self._groups.setdefault(ticket.group, []), (ticket.start, number, ticket))
        if ticket.deadline < float("inf"):
            heapq.heappush(self._deadlines, (ticket.deadline, number, ticket))
        self._waiting[ticket.client] += 1
        self._costs[ticket.client] += ticket.cost
        self.cost += ticket.cost

    def drop(self, tickets: Sequence[Ticket]) -> None:
        """Remove unwanted tickets from the queue; running tickets are not affected."""
        for ticket in tickets:
            if ticket.state == "waiting":
                self._remove(ticket, "dropped")
                ticket.item = None  # its heap entries are discarded later
                self._stale += 1
        if self._stale > _MOST_STALE + len(self):
            self._compact()

    def pop(self, now: float, *, horizon: float = 0.0, room: Room = ANY) -> Batch:
        """Return the next batch. Among the tickets whose turn has come, a ticket with a deadline before the horizon
        comes first; a short deadline does not advance a client's turn.
        """
        batch = Batch([], self._late(now))
        group = self._next_group(now + horizon, room, batch)
        size = sum(ticket.size for ticket in batch.tickets)
        heap = self._groups.get(group, [])
        while heap and len(batch.tickets) < room.most:
            start, _, ticket = heap[0]
            if ticket.state == "waiting":
                is_too_large = batch.tickets and size + ticket.size > room.most_size
                if start > room.until or is_too_large or not room.fits(ticket):
                    break
                size += ticket.size
                self._take(ticket, batch)
            heapq.heappop(heap)
        if len(self._finish) > _MOST_STALE + 2 * len(self._waiting):
            self._compact()
        return batch

    def forget(self) -> None:
        """Reset the clock when the queue is empty, which bounds memory for any number of past clients."""
        assert not self._waiting
        self._groups, self._deadlines, self._stale = {}, [], 0
        self._clock, self._finish, self.cost = 0.0, {}, 0.0

    def _late(self, now: float) -> list[Ticket]:
        late = list[Ticket]()
        while self._deadlines and (
            self._deadlines[0][2].state != "waiting" or self._deadlines[0][0] <= now
        ):
            ticket = heapq.heappop(self._deadlines)[2]
            if ticket.state == "waiting":
                self._remove(ticket, "taken")
                late.append(ticket)
        return late

    def _take(self, ticket: Ticket, batch: Batch) -> None:
        self._clock = max(self._clock, ticket.start)
        self._remove(ticket, "taken")
        batch.tickets.append(ticket)

    def _next_group(self, urgent: float, room: Room, batch: Batch) -> Hashable:
        if self._deadlines and self._deadlines[0][0] <= urgent:
            ticket = self._deadlines[0][2]
            if ticket.start <= min(self._clock, room.until) and room.fits(ticket):
                heapq.heappop(self._deadlines)
                self._take(ticket, batch)
                return ticket.group
        best: tuple[float, Hashable] = (float("inf"), None)
        for group, heap in list(self._groups.items()):
            while heap and heap[0][2].state != "waiting":
                heapq.heappop(heap)
            if not heap:
                del self._groups[group]
            elif heap[0][0] < best[0] and heap[0][0] <= room.until and room.fits(heap[0][2]):
                best = heap[0][0], group
        return best[1]

    def _remove(self, ticket: Ticket, state: Literal["taken", "dropped"]) -> None:
        ticket.state = state
        self.cost -= ticket.cost
        self._waiting[ticket.client] -= 1
        self._costs[ticket.client] -= ticket.cost
        if not self._waiting[ticket.client]:
            del self._waiting[ticket.client], self._costs[ticket.client]

    def _compact(self) -> None:
        """Discard the entries of dropped tickets."""
        for group, heap in list(self._groups.items()):
            kept = [entry for entry in heap if entry[2].state == "waiting"]
            heapq.heapify(kept)
            if kept:
                self._groups[group] = kept
            else:
                del self._groups[group]
        self._deadlines = [entry for entry in self._deadlines if entry[2].state == "waiting"]
        heapq.heapify(self._deadlines)
        self._finish = {name: at for name, at in self._finish.items() if at > self._clock}
        self._stale = 0
