"""A load on a server, and its results.

**Closed loop.** So many askers, each with a connection of its own; each asks again as soon as it is
answered, so that as much is asked as the server can answer. Who is turned away (503) comes back after as
many seconds as the server said.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from .loopback import Connection, Loopback

OK, REJECTED = 200, 503
BROKEN = 0  # the status of a request that got no answer at all


class Sent(NamedTuple):
    """One request: when it was sent, how long its answer took, and the status of the answer."""

    at: float  # seconds from the beginning
    seconds: float
    status: int


class Request(NamedTuple):
    """What is sent."""

    path: str
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Batches:
    """Batches as a server counts them, of all its models together."""

    # By the size class of their inputs, and by the upper edge of a class of their own sizes.
    counts: Counter[tuple[str, float]] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)  # by their size class

    def since(self, before: "Batches") -> "Batches":
        """Return the counts since an earlier moment."""
        counts = {key: count - before.counts[key] for key, count in self.counts.items()}
        return Batches(counts=Counter(counts), inputs=self.inputs - before.inputs)

    @property
    def sizes(self) -> dict[float, int]:
        """How many batches there are by the upper edge of their size, none included."""
        found = Counter[float]()
        for (_, edge), count in sorted(self.counts.items(), key=lambda item: item[0][1]):
            found[edge] += count
        return dict(found)

    @property
    def mean(self) -> float:
        """Inputs of a batch; NaN if there was none."""
        number = self.counts.total()
        return self.inputs.total() / number if number else math.nan


def batches_in(metrics: str) -> Batches:
    """The sizes of batches in the metrics of a server."""
    found = Batches()
    for family in text_string_to_metric_families(metrics):
        below = 0
        for sample in family.samples if family.name == "foveal_batch_size" else ():
            places = sample.labels["places"]
            if sample.name.endswith("_bucket"):  # counts of all up to an edge, in rising order
                found.counts[places, float(sample.labels["le"])] += int(sample.value) - below
                below = int(sample.value)
            elif sample.name.endswith("_sum"):
                found.inputs[places] += int(sample.value)
                below = 0
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """The results of a load."""

    sent: Sequence[Sent]
    seconds: float
    batches: Batches

    def count(self, status: int) -> int:
        """Requests that ended with a status."""
        return sum(one.status == status for one in self.sent)

    @property
    def statuses(self) -> Counter[int]:
        """How many requests ended with each status."""
        return Counter(one.status for one in self.sent)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.count(OK) / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds within which that share of the answers came; NaN if there was none."""
        taken = sorted(one.seconds for one in self.sent if one.status == OK)
        return 1000 * taken[math.ceil(share * len(taken)) - 1] if taken else math.nan


async def closed_loop(
    address: Loopback,
    requests: Iterator[Request],
    *,
    concurrency: int,
    seconds: float,
    most: int,
    token: str | None = None,
) -> Load:
    """Put a closed loop on a server, for some seconds and at most so many requests.

    Args:
        address: of the server.
        requests: what to ask, without an end.
        concurrency: how many askers.
        seconds: after which nothing more is asked; what was asked is waited for.
        most: requests.
        token: that the server asks for.
    """
    sent = list[Sent]()
    began = time.perf_counter()

    async def ask_on() -> None:
        async with Connection(address, token=token) as connection:
            while (at := time.perf_counter() - began) < seconds and len(sent) < most:
                status, wait = await _ask(connection, next(requests))
                sent.append(Sent(at, time.perf_counter() - began - at, status))
                await asyncio.sleep(min(wait, max(0.0, began + seconds - time.perf_counter())))

    before = await batches_of(address, token)
    began = time.perf_counter()
    await asyncio.gather(*(ask_on() for _ in range(concurrency)))
    taken = time.perf_counter() - began
    after = await batches_of(address, token)
    return Load(sent=sent, seconds=taken, batches=after.since(before))


async def _ask(connection: Connection, request: Request) -> tuple[int, float]:
    """The status, and the seconds to wait before asking again."""
    try:
        reply = await connection.ask("POST", request.path, request.body)
    except (OSError, EOFError):
        return BROKEN, 0.1
    wait = float(reply.headers.get("retry-after", "1")) if reply.status == REJECTED else 0.0
    return reply.status, wait


async def batches_of(address: Loopback, token: str | None = None) -> Batches:
    """The counters of a server since its start."""
    # On a connection of its own: the server closes one that is quiet for long.
    async with Connection(address, token=token) as connection:
        return batches_in((await connection.ask("GET", "/metrics")).body.decode())
