"""A load on a server, and its results.

**Closed loop.** A fixed number of clients, each with a separate connection, send the next request as soon as
the previous one is answered; this keeps the server fully loaded. A rejected client (503) retries after the
number of seconds in the answer.
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
BROKEN = 0  # the status of a request without an answer


class Sent(NamedTuple):
    """One request: the time it was sent, its latency, and the status of its answer."""

    at: float  # seconds from the start
    seconds: float
    status: int


class Request(NamedTuple):
    """A request to send."""

    path: str
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Batches:
    """Batches as a server counts them, of all its models together."""

    # By the size class of their inputs, and by the upper edge of a range of batch sizes.
    counts: Counter[tuple[str, float]] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)  # by their size class

    def since(self, before: "Batches") -> "Batches":
        """Return the counts since an earlier moment."""
        counts = {key: count - before.counts[key] for key, count in self.counts.items()}
        return Batches(counts=Counter(counts), inputs=self.inputs - before.inputs)

    @property
    def sizes(self) -> dict[float, int]:
        """Return the number of batches by the upper edge of their size, including empty ranges."""
        found = Counter[float]()
        for (_, edge), count in sorted(self.counts.items(), key=lambda item: item[0][1]):
            found[edge] += count
        return dict(found)

    @property
    def mean(self) -> float:
        """Return the mean number of inputs of a batch; NaN without batches."""
        number = self.counts.total()
        return self.inputs.total() / number if number else math.nan


def batches_in(metrics: str) -> Batches:
    """Read the batch sizes from the metrics of a server."""
    found = Batches()
    for family in text_string_to_metric_families(metrics):
        below = 0
        for sample in family.samples if family.name == "foveal_batch_size" else ():
            places = sample.labels["places"]
            if sample.name.endswith("_bucket"):  # cumulative counts, in rising order
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
        """Count the requests that ended with a status."""
        return sum(one.status == status for one in self.sent)

    @property
    def statuses(self) -> Counter[int]:
        """Count the requests by status."""
        return Counter(one.status for one in self.sent)

    @property
    def rate(self) -> float:
        """Return the answers per second."""
        return self.count(OK) / self.seconds

    def percentile(self, share: float) -> float:
        """Return the latency percentile in milliseconds; NaN without answers."""
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
    """Run a closed loop against a server, with a limit on the seconds and on the number of requests.

    Args:
        address: the address of the server.
        requests: the requests to send, an infinite iterator.
        concurrency: the number of clients.
        seconds: the time after which no new request is sent; pending requests are awaited.
        most: the maximum number of requests.
        token: the token for the server.
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
    """Send a request; return the status and the seconds to wait before the next one."""
    try:
        reply = await connection.ask("POST", request.path, request.body)
    except (OSError, EOFError):
        return BROKEN, 0.1
    wait = float(reply.headers.get("retry-after", "1")) if reply.status == REJECTED else 0.0
    return reply.status, wait


async def batches_of(address: Loopback, token: str | None = None) -> Batches:
    """Read the counters of a server since its start."""
    # A new connection each time, because the server closes idle connections.
    async with Connection(address, token=token) as connection:
        return batches_in((await connection.ask("GET", "/metrics")).body.decode())
