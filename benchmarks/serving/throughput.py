"""The overhead of the server compared with the bare predictor, at concurrency 32 and 1."""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import Row
from benchmarks.served import ServedProcess
from benchmarks.serving.bench_serve import requests
from benchmarks.serving.load import OK, Load, closed_loop
from benchmarks.serving.loopback import Connection
from foveal.data import Example

from .bare import Bare
from .models import SEED

CONCURRENCY = 32
ROUNDS, SECONDS = 17, 2.0  # short: the speed of a shared machine changes within seconds
_WARMING = 2.0  # seconds of load before the measurement
_ALONE = 600  # texts, sent one after the other
_MOST = 1_000_000


def load(server: ServedProcess, model: str, texts: Sequence[str], seconds: float) -> Load:
    """Run a closed loop of concurrency 32."""
    asked = requests([model], texts, seed=SEED)
    return asyncio.run(
        closed_loop(server.address, asked, concurrency=CONCURRENCY, seconds=seconds, most=_MOST)
    )


def throughput(server: ServedProcess, run: Path, texts: Sequence[str]) -> tuple[list[Row], float]:
    """Measure server and bare predictor in turn; return the rows and the answered requests per second."""
    bare, generator = Bare(run, texts), random.Random(SEED)
    load(server, run.name, texts, _WARMING)
    loads, ratios, costs, rates = list[Load](), list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        used = server.cpu_seconds
        loads.append(load(server, run.name, texts, SECONDS))
        used = server.cpu_seconds - used
        alone = bare.rate(loads[-1].batches, seconds=SECONDS, generator=generator)
        ratios.append(loads[-1].rate / alone.on_the_clock)
        costs.append(loads[-1].count(OK) / used / alone.of_the_core)
        rates.append(loads[-1].rate)
    median = statistics.median
    p50, p99 = ([one.percentile(share) for one in loads] for share in (0.5, 0.99))
    tails = [last / middle for last, middle in zip(p99, p50, strict=True)]
    sizes = [one.batches.mean for one in loads]
    name = f"concurrency {CONCURRENCY}"
    return [
        _row(f"{name}, throughput to the bare predictor's", ratios, "x", 0.8, ">="),
        _row(f"{name}, the same per processor second", costs, "x"),
        _row(f"{name}, requests/s", rates, "1/s"),
        _row(f"{name}, inputs of a batch", sizes, "inputs"),
        _row(f"{name}, p50", p50, "ms"),
        _row(f"{name}, p99", p99, "ms"),
        _row(f"{name}, p99 to p50", tails, "x", 4.0, "<="),
    ], median(rates)


def alone(server: ServedProcess, run: Path, texts: Sequence[str]) -> list[Row]:
    """Measure one text at a time on the server and on the predictor, in alternating order."""
    bare = Bare(run, texts)
    chosen = random.Random(SEED).choices(texts, k=_ALONE)
    asked, answered, added = asyncio.run(_each(server, run.name, bare, chosen))
    return [
        Row(name="concurrency 1, server, median", value=asked, unit="ms"),
        Row(name="concurrency 1, bare predictor, median", value=answered, unit="ms"),
        Row(
            name="concurrency 1, added by the server, median of differences",
            value=added,
            unit="ms",
            target=3.0,
            sense="<=",
        ),
    ]


async def _each(
    server: ServedProcess, model: str, bare: Bare, texts: Sequence[str]
) -> tuple[float, float, float]:
    asked, answered = list[float](), list[float]()
    async with Connection(server.address) as connection:

        async def ask(text: str) -> None:
            path, body = next(requests([model], [text]))
            began = time.perf_counter()
            reply = await connection.ask("POST", path, body)
            asked.append(1000 * (time.perf_counter() - began))
            assert reply.status == OK, reply

        def answer(text: str) -> None:
            began = time.perf_counter()
            bare.answer([Example(text)])
            answered.append(1000 * (time.perf_counter() - began))

        for number, text in enumerate(texts):
            if number % 2:
                answer(text)
            await ask(text)
            if not number % 2:
                answer(text)
    added = [one - other for one, other in zip(asked, answered, strict=True)]
    middles = (statistics.median(some) for some in (asked, answered, added))
    return next(middles), next(middles), next(middles)


def _row(
    name: str, values: Sequence[float], unit: str, target: float | None = None, sense: str = ""
) -> Row:
    spread = min(values), max(values)
    value = statistics.median(values)
    if target is None:
        return Row(name=name, value=value, unit=unit, spread=spread)
    assert sense in ("<=", ">=")
    return Row(name=name, value=value, unit=unit, spread=spread, target=target, sense=sense)
