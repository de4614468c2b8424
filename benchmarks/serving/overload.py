"""Overload: rejections, latency and recovery of a server at twice its capacity.

**Open loop.** Requests are sent at a fixed rate, without waiting for earlier answers; latency counts from the
time a request was due. The rate is half the capacity of the server, then twice the capacity, then half again.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence

from benchmarks.results import Row
from benchmarks.served import ServedProcess
from benchmarks.serving.bench_serve import requests
from benchmarks.serving.load import BROKEN, OK, REJECTED, Load, Request, Sent, batches_of
from benchmarks.serving.loopback import Connection

from .models import SEED

BEFORE, DURING, AFTER = 4.0, 8.0, 6.0  # seconds
_MOST_SECONDS = 2.0  # to recover
# One client may fill half of the queue (limits.waiting_seconds); its requests also wait for running batches.
_MOST_LATENCY = 1500.0
_MOST_OPEN = 900  # connections, fewer than the server takes


async def open_loop(
    server: ServedProcess, asked: Iterator[Request], *, rate: float, seconds: float
) -> Load:
    """Send requests at a fixed rate."""
    idle, sent, under_way = list[Connection](), list[Sent](), set[asyncio.Task[None]]()
    before, began = await batches_of(server.address), time.perf_counter()

    async def ask(due: float, request: Request) -> None:
        connection = idle.pop() if idle else Connection(server.address)
        try:
            status = (await connection.ask("POST", request.path, request.body)).status
        except (OSError, EOFError):
            status = BROKEN
        sent.append(Sent(due, time.perf_counter() - began - due, status))
        idle.append(connection)

    for number in range(int(rate * seconds)):
        due = number / rate
        await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
        if len(under_way) < _MOST_OPEN:
            task = asyncio.create_task(ask(due, next(asked)))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        else:
            sent.append(Sent(due, 0.0, BROKEN))
    taken = time.perf_counter() - began
    await asyncio.gather(*under_way)
    for connection in idle:
        connection.close()
    after = await batches_of(server.address)
    return Load(sent=sent, seconds=taken, batches=after.since(before))


def overload(
    server: ServedProcess, model: str, texts: Sequence[str], sustainable: float
) -> list[Row]:
    """Measure at half, twice and half of the capacity."""
    loads = asyncio.run(_three(server, requests([model], texts, seed=SEED), sustainable))
    before, during, after = loads
    usual = 2 * before.percentile(0.99) / 1000
    late = [one.at + one.seconds for one in after.sent if one.status != OK or one.seconds > usual]
    failed = sum(
        count
        for load in loads
        for status, count in load.statuses.items()
        if status not in (OK, REJECTED)
    )
    name = "twice the load"
    return [
        Row(name=f"{name}, offered", value=len(during.sent) / during.seconds, unit="1/s"),
        Row(name=f"{name}, answered", value=during.rate, unit="1/s"),
        Row(
            name=f"{name}, answered, of what can be",
            value=during.rate / sustainable,
            unit="x",
        ),
        Row(
            name=f"{name}, refused with 503",
            value=during.count(REJECTED) / len(during.sent),
            unit="share",
        ),
        _bounded(f"{name}, neither answered nor refused", failed, "requests", 0.0),
        Row(name=f"{name}, p50 of the answered", value=during.percentile(0.5), unit="ms"),
        _bounded(f"{name}, p99 of the answered", during.percentile(0.99), "ms", _MOST_LATENCY),
        Row(name="half the load, p99 before", value=before.percentile(0.99), unit="ms"),
        Row(name="half the load, p99 after", value=after.percentile(0.99), unit="ms"),
        _bounded("recovered after", max(late, default=0.0), "s", _MOST_SECONDS),
    ]


async def _three(
    server: ServedProcess, asked: Iterator[Request], sustainable: float
) -> tuple[Load, Load, Load]:
    before = await open_loop(server, asked, rate=sustainable / 2, seconds=BEFORE)
    # Requests sent while the server still works on the overload must not wait for its end.
    flood = asyncio.create_task(open_loop(server, asked, rate=2 * sustainable, seconds=DURING))
    await asyncio.sleep(DURING)
    after = await open_loop(server, asked, rate=sustainable / 2, seconds=AFTER)
    return before, await flood, after


def _bounded(name: str, value: float, unit: str, target: float) -> Row:
    return Row(name=name, value=value, unit=unit, target=target, sense="<=")
