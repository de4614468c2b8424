"""What waits to be answered: in batches of one group, fair between clients, the urgent first.

Start-time fair queueing (Goyal et al. 1996): what a client asks for is stamped with a virtual time,

    start  = max( clock, finish of the client's last ),   finish = start + cost

and the smallest start is served first; the clock is the start of what was served last. A client that asks
for a thousand things at once is stamped far into the future, and one that asks for one goes before most
of them. Only things of one group (one model, one way to ask it, one size class) go into one batch.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, NamedTuple, final

# Entries of those who gave up that may lie in the heaps beside as many live ones.
_MOST_STALE = 1000


@final
@dataclass(eq=False, slots=True)
class Ticket:
    """One thing that was asked for."""

    group: Hashable
    item: Any
    client: str
    cost: float = 1.0
    deadline: float = float("inf")  # on the clock of `time.monotonic`
    asked: Any = None  # what it is a part of, for whoever gets the outcome
    state: Literal["waiting", "taken", "dropped"] = "waiting"


class Batch(NamedTuple):
    """What to do next, and what has been waiting for too long."""

    tickets: list[Ticket]
    late: list[Ticket]


@final
class FairQueue:
    """Tickets that wait. Not safe for threads: all of it happens in the event loop."""

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
        """How many clients wait for something."""
        return len(self._waiting)

    @property
    def num_groups(self) -> int:
        """How many groups there are, each of which takes a batch of its own."""
        return len(self._groups)

    def cost_of(self, client: str) -> float:
        """The cost of what a client waits for."""
        return self._costs.get(client, 0.0)

    def push(self, ticket: Ticket) -> None:
        """Wait."""
        start = max(self._clock, self._finish.get(ticket.client, 0.0))
        self._finish[ticket.client] = start + ticket.cost
        number = next(self._numbers)
        heapq.heappush(self._groups.setdefault(ticket.group, []), (start, number, ticket))
        if ticket.deadline < float("inf"):
            heapq.heappush(self._deadlines, (ticket.deadline, number, ticket))
        self._waiting[ticket.client] += 1
        self._costs[ticket.client] += ticket.cost
        self.cost += ticket.cost

    def drop(self, tickets: Sequence[Ticket]) -> None:
        """Wait no more: nobody wants these. Those taken already are left alone."""
        for ticket in tickets:
            if ticket.state == "waiting":
                self._remove(ticket, "dropped")
                ticket.item = None  # its entries are found and thrown away later
                self._stale += 1
        if self._stale > _MOST_STALE + len(self):
            self._compact()

    def pop(self, now: float, *, horizon: float, most: int, most_cost: float) -> Batch:
        """The next batch: at most so many tickets, and more than the cost only if it is one. A ticket
        whose deadline is nearer than the horizon comes before all others.
        """
        batch = Batch([], [])
        while self._deadlines and (
            self._deadlines[0][2].state != "waiting" or self._deadlines[0][0] <= now
        ):
            ticket = heapq.heappop(self._deadlines)[2]
            if ticket.state == "waiting":
                self._remove(ticket, "taken")
                batch.late.append(ticket)
        group = self._next_group(now + horizon, batch)
        cost = sum(ticket.cost for ticket in batch.tickets)
        heap = self._groups.get(group, [])
        while heap and len(batch.tickets) < most:
            start, _, ticket = heap[0]
            if ticket.state == "waiting":
                if batch.tickets and cost + ticket.cost > most_cost:
                    break
                cost += ticket.cost
                self._clock = max(self._clock, start)
                self._remove(ticket, "taken")
                batch.tickets.append(ticket)
            heapq.heappop(heap)
        if not self._waiting:
            self._forget()
        elif len(self._finish) > _MOST_STALE + 2 * len(self._waiting):
            self._compact()
        return batch

    def _next_group(self, urgent: float, batch: Batch) -> Hashable:
        if self._deadlines and self._deadlines[0][0] <= urgent:
            ticket = heapq.heappop(self._deadlines)[2]
            self._remove(ticket, "taken")
            batch.tickets.append(ticket)
            return ticket.group
        best: tuple[float, Hashable] = (float("inf"), None)
        for group, heap in list(self._groups.items()):
            while heap and heap[0][2].state != "waiting":
                heapq.heappop(heap)
            if not heap:
                del self._groups[group]
            elif heap[0][0] < best[0]:
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
        """Throw away the entries of those who gave up."""
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

    def _forget(self) -> None:
        """Nobody waits: begin anew, so that nothing grows with the clients there have ever been."""
        self._groups, self._deadlines, self._stale = {}, [], 0
        self._clock, self._finish, self.cost = 0.0, {}, 0.0
