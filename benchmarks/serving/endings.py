"""Does a server lose requests when its model is replaced, or when it shuts down, under load?"""

import asyncio
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.results import Row
from benchmarks.served import SECONDS, ServedProcess, served
from benchmarks.serving.bench_serve import requests
from benchmarks.serving.load import BROKEN, OK, REJECTED, Request
from benchmarks.serving.loopback import Connection
from foveal.bundles import load_bundle, save_bundle

from .models import SEED

CONCURRENCY = 32
RELOADS, ENDINGS = 3, 5
_REACHED = 0.02  # seconds after which a request on the loopback interface has been read
_PAUSE = 2.5  # seconds of load before and after each event


async def _ask_until(
    server: ServedProcess, model: str, texts: Sequence[str], stop: asyncio.Event
) -> Counter[str]:
    """Count the answers by model version, and the failed requests by status."""
    asked, found = requests([model], texts, seed=SEED), Counter[str]()

    async def ask_on() -> None:
        async with Connection(server.address) as connection:
            while not stop.is_set():
                status, body = await _asked(connection, next(asked))
                found[json.loads(body)["version"] if status == OK else str(status)] += 1

    await asyncio.gather(*(ask_on() for _ in range(CONCURRENCY)))
    return found


async def _asked(connection: Connection, request: Request) -> tuple[int, bytes]:
    try:
        reply = await connection.ask("POST", request.path, request.body)
    except (OSError, EOFError):
        return BROKEN, b""
    return reply.status, reply.body


def reloads(run: Path, texts: Sequence[str]) -> list[Row]:
    """Overwrite a model with different weights while it serves requests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        shutil.copytree(run, path)
        with served([path], Path(folder) / "log") as server:
            found = asyncio.run(_reloaded(server, path, texts))
    refused = found.pop(str(REJECTED), 0)
    lost = sum(count for name, count in found.items() if name.isdecimal() and len(name) <= 3)
    versions = len(found) - sum(name.isdecimal() and len(name) <= 3 for name in found)
    return [
        Row(name="hot reload, versions that answered", value=versions, unit="versions"),
        Row(name="hot reload, requests answered", value=found.total() - lost, unit="requests"),
        Row(name="hot reload, requests refused with 503", value=refused, unit="requests"),
        _none("hot reload, accepted requests lost", lost),
    ]


async def _reloaded(server: ServedProcess, path: Path, texts: Sequence[str]) -> Counter[str]:
    stop = asyncio.Event()
    asking = asyncio.create_task(_ask_until(server, path.name, texts, stop))
    for number in range(RELOADS):
        await asyncio.sleep(_PAUSE)
        await asyncio.to_thread(change, path, number)
    await asyncio.sleep(2 * _PAUSE)
    stop.set()
    return await asking


def change(path: Path, number: int) -> None:
    """Write another version of a model into its folder."""
    task = load_bundle(path)
    with torch.no_grad():
        next(task.model.parameters()).mul_(1 + 1e-3 * (number + 1))
    save_bundle(task, path)


def endings(run: Path, texts: Sequence[str]) -> list[Row]:
    """Stop a server under load; it must answer every request that it has read."""
    found = Counter[int]()
    for _ in range(ENDINGS):
        with (
            tempfile.TemporaryDirectory() as folder,
            served([run], Path(folder) / "log") as server,
        ):
            found += asyncio.run(_ended(server, run.name, texts))
            assert server.process.wait(SECONDS) == 0, server.log.read_text()
    answered, refused = found.pop(OK, 0), found.pop(REJECTED, 0)
    return [
        Row(name="SIGTERM, requests under way, answered", value=answered, unit="requests"),
        Row(name="SIGTERM, requests refused with 503", value=refused, unit="requests"),
        _none("SIGTERM, accepted requests lost", found.total()),
    ]


async def _ended(server: ServedProcess, model: str, texts: Sequence[str]) -> Counter[int]:
    """Count the statuses of the requests in progress at the shutdown.

    Requests sent just before the shutdown may not have reached the server and do not count.
    """
    asked, found = requests([model], texts, seed=SEED), Counter[int]()
    told_at = float("inf")

    async def ask_on() -> None:
        async with Connection(server.address) as connection:
            while time.perf_counter() < told_at:
                began = time.perf_counter()
                status, _ = await _asked(connection, next(asked))
                if began + _REACHED < told_at <= time.perf_counter():
                    found[status] += 1

    asking = asyncio.gather(*(ask_on() for _ in range(CONCURRENCY)))
    await asyncio.sleep(_PAUSE)
    told_at = time.perf_counter()
    server.process.terminate()
    await asking
    return found


def _none(name: str, value: float) -> Row:
    return Row(name=name, value=value, unit="requests", target=0.0, sense="<=")
