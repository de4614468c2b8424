"""Serving on Ray: its overhead compared with the one-machine server, the gain from a second replica, and faults.

    python -m benchmarks.served_on_ray --runs runs

Three servers run at once and are measured in turn: the one-machine server, Ray with one replica and Ray with two.
The servers, the load and the proxies of Ray share the cores of this machine; figures are compared within a round.
Then the server with two replicas loses one and gets another model, under load. A fourth server, with a minimum and
a maximum number of replicas, scales with its load.
"""

import asyncio
import os
import shutil
import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.askers import Askers
from benchmarks.clusters import wait_for, workers
from benchmarks.measuring import measured_rows
from benchmarks.results import Results, Row, digest
from benchmarks.served import ServedProcess, children_of, cpu_seconds_of, served
from benchmarks.serving.bench_serve import requests
from benchmarks.serving.endings import change
from benchmarks.serving.load import OK, REJECTED
from benchmarks.serving.loopback import Connection
from benchmarks.serving.models import FILES, SEED, texts
from benchmarks.serving.throughput import CONCURRENCY, load
from examples.support import DATA
from foveal.serving.client import Client

OUT = Path("results/scale_serve.json")
ROUNDS, SECONDS = 7, 3.0
_WARMING = 3.0  # seconds of load before the measurement
_ALONE = 150  # texts, sent one after the other
_ONE_BOX, _ONE, _TWO = "one-box server", "Ray, 1 replica", "Ray, 2 replicas"
_MOST_SECONDS = 300.0  # timeout of the start of a replica on a busy machine


def measured(run: Path, folder: Path) -> list[Row]:
    """Measure all figures."""
    path, starts = Path(shutil.copytree(run, folder / "model")), dict[str, float]()
    with started(_TWO, ("--ray", "--replicas", "2"), path, starts) as two:
        with (
            started(_ONE_BOX, (), path, starts) as one_box,
            started(_ONE, ("--ray", "--replicas", "1"), path, starts) as one,
        ):
            servers = {_ONE_BOX: one_box, _ONE: one, _TWO: two}
            found = throughput(servers, path.name, texts()) + alone(servers, path.name, texts())
            found += processor_time(servers, path.name, texts())
        faults = with_faults(two, path)
    times = [
        Row(name=f"{name}, to start", value=value, unit="s")
        for name, value in sorted(starts.items())
    ]
    return found + times + faults + [growth(path)]


@contextmanager
def started(
    name: str, options: Sequence[str], path: Path, starts: dict[str, float]
) -> Iterator[ServedProcess]:
    """Start a server; yields it with the seconds that the start took."""
    began, log = time.perf_counter(), path.parent / f"{len(starts)}.txt"
    with served([path], log, options=options) as server:
        starts[name] = time.perf_counter() - began
        yield server


def throughput(servers: Mapping[str, ServedProcess], model: str, asked: Sequence[str]) -> list[Row]:
    """Measure each server with a closed loop of concurrency 32, round by round."""
    rates: dict[str, list[float]] = {name: [] for name in servers}
    middles: dict[str, list[float]] = {name: [] for name in servers}
    for server in servers.values():
        load(server, model, asked, _WARMING)
    for _ in range(ROUNDS):
        for name, server in servers.items():
            one = load(server, model, asked, SECONDS)
            assert set(one.statuses) <= {OK, REJECTED}, one.statuses
            rates[name].append(one.rate)
            middles[name].append(one.percentile(0.5))
    at = f"concurrency {CONCURRENCY}"
    return [
        *(_median(f"{at}, {name}, requests/s", rates[name], "1/s") for name in servers),
        *(_median(f"{at}, {name}, p50", middles[name], "ms") for name in servers),
        _median(f"{at}, {_ONE} to the one-box server", _ratios(rates, _ONE, _ONE_BOX), "x"),
        _median(f"{at}, 2 replicas to 1", _ratios(rates, _TWO, _ONE), "x"),
    ]


def alone(servers: Mapping[str, ServedProcess], model: str, asked: Sequence[str]) -> list[Row]:
    """Measure the latency of one text at a time, on the one-machine server and on one replica in turn."""
    taken = asyncio.run(_each({name: servers[name] for name in (_ONE_BOX, _ONE)}, model, asked))
    added = [one - other for one, other in zip(taken[_ONE], taken[_ONE_BOX], strict=True)]
    return [
        *(_median(f"concurrency 1, {name}, latency", times, "ms") for name, times in taken.items()),
        _median("concurrency 1, added by Ray, median of differences", added, "ms"),
    ]


async def _each(
    servers: Mapping[str, ServedProcess], model: str, asked: Sequence[str]
) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in servers}
    asking = requests([model], asked, seed=SEED)
    async with (
        Connection(servers[_ONE_BOX].address) as first,
        Connection(servers[_ONE].address) as second,
    ):
        for _ in range(_ALONE):
            path, body = next(asking)
            for name, connection in ((_ONE_BOX, first), (_ONE, second)):
                began = time.perf_counter()
                reply = await connection.ask("POST", path, body)
                taken[name].append(1000 * (time.perf_counter() - began))
                assert reply.status == OK, reply
    return taken


def processor_time(
    servers: Mapping[str, ServedProcess], model: str, asked: Sequence[str]
) -> list[Row]:
    """Measure the CPU time of a request by process. Processes of the other servers are idle."""
    parts: dict[str, tuple[str, Callable[[], float]]] = {
        "both processes": (_ONE_BOX, lambda: servers[_ONE_BOX].cpu_seconds),
        "Ray's proxy": (_ONE, lambda: _used(workers("ProxyActor", os.getsid(0)))),
        "the replica, reading and writing": (_ONE, lambda: _used(_replicas())),
        "the replica, computing": (
            _ONE,
            lambda: _used(child for each in _replicas() for child in children_of(each)),
        ),
    }
    used, counts = {part: -now() for part, (_, now) in parts.items()}, dict[str, int]()
    for name in (_ONE_BOX, _ONE):
        counts[name] = load(servers[name], model, asked, 2 * SECONDS).count(OK)
    return [
        Row(
            name=f"processor time of a request, {name}, {part}",
            value=1000 * (used[part] + now()) / counts[name],
            unit="ms",
        )
        for part, (name, now) in parts.items()
    ]


def _used(pids: Iterable[int]) -> float:
    return sum(map(cpu_seconds_of, pids))


def with_faults(server: ServedProcess, path: Path) -> list[Row]:
    """Kill one of two replicas, then replace both by replicas of another model."""
    with (
        Client(server.url) as client,
        Askers(client, path.name, texts(), number=CONCURRENCY).asking() as askers,
    ):
        wait_for(lambda: len(askers.answers) > CONCURRENCY, server.process)
        before, killed = len(askers.answers), _replicas().pop()
        os.kill(killed, signal.SIGKILL)
        replaced = _until(server, lambda: len(_replicas() - {killed}) == 2)
        lost, old, at_kill = len(askers.failures), _replicas(), len(askers.answers) - before
        change(path, 0)
        updated = _until(server, lambda: len(_replicas()) == 2 and not _replicas() & old)
    answered = len(askers.answers) - before - at_kill
    kill, update = "a replica killed under load", "another model under load"
    return [
        Row(name=f"{kill}, until another starts", value=replaced, unit="s"),
        Row(name=f"{kill}, requests answered meanwhile", value=at_kill, unit="requests"),
        _none(f"{kill}, requests failed", lost),
        Row(name=f"{update}, until all replicas have it", value=updated, unit="s"),
        Row(name=f"{update}, requests answered meanwhile", value=answered, unit="requests"),
        _none(f"{update}, requests failed", len(askers.failures) - lost),
    ]


def growth(path: Path) -> Row:
    """Measure the time to scale from one replica to two under load."""
    options = ("--ray", "--replicas", "1..2")
    with (
        served([path], path.parent / "growth.txt", options=options) as server,
        Client(server.url) as client,
        Askers(client, path.name, texts(), number=CONCURRENCY).asking(),
    ):
        seconds = _until(server, lambda: len(_replicas()) == 2)
    return Row(name="1..2 replicas, load until a second starts", value=seconds, unit="s")


def _replicas() -> set[int]:
    """List the replica processes started by this process; other users of the machine may have replicas too."""
    return set(workers("ServeReplica", os.getsid(0)))


def _until(server: ServedProcess, is_so: Callable[[], bool]) -> float:
    """Return the seconds until a condition holds."""
    began = time.perf_counter()
    wait_for(is_so, server.process, _MOST_SECONDS)
    return time.perf_counter() - began


def _ratios(rates: Mapping[str, Sequence[float]], name: str, other: str) -> list[float]:
    return [one / two for one, two in zip(rates[name], rates[other], strict=True)]


def _median(name: str, values: Sequence[float], unit: str) -> Row:
    spread = min(values), max(values)
    return Row(name=name, value=statistics.median(values), unit=unit, spread=spread)


def _none(name: str, value: float) -> Row:
    return Row(name=name, value=value, unit="requests", target=0.0, sense="<=")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the results."""
    rows, out = measured_rows(
        measured, arguments, about="Serving on Ray beside the server on one machine.", out=OUT
    )
    packages = ("ray", "fastapi", "starlette", "uvicorn")
    result = Results.here("python -m benchmarks.served_on_ray", packages=packages)
    data = {name: digest(DATA / name) for name in FILES.values()}
    spec = {"seed": SEED, "rounds": ROUNDS, "seconds": SECONDS, "concurrency": CONCURRENCY}
    replace(result.with_rows(rows), data=data, spec=spec).save(out)


if __name__ == "__main__":
    main()
