"""Does the server stay healthy with correct, malformed, slow and aborted requests for a long time?

    python -m benchmarks.soak --minutes 10
    python -m benchmarks.soak --minutes 10 --run runs/ice

Correct requests of mixed sizes and options run all the time, mixed with connections that are closed in the
middle of a request, slow writers, bodies that never arrive, slow readers, bodies beyond the limit, and
invalid HTTP. No answer may be a 500, every answer must arrive once and equal the output of `foveal predict`,
byte by byte, and the memory of the server must not grow.
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.serving.load import OK, REJECTED
from benchmarks.serving.loopback import Connection, Loopback

from .results import Results, Row
from .served import SECONDS, ServedProcess, served
from .serving.models import USUAL, fitted, texts
from .soak_askers import (
    Soak,
    Way,
    good,
    leaving,
    malformed,
    never_written,
    oversized,
    slow_reader,
    slow_writer,
)

OUT = Path("results/serving_soak.json")
SEED = 1
WAYS = tuple(itertools.starmap(Way, itertools.product((1, 3), (False, True))))
_GOOD = 8  # clients that send correct requests
_BODY_BYTES = 1 << 18  # low, because the test exceeds the limit often
_PATIENCE = 5  # seconds for a body
_WAITING = 4  # seconds of queued work: all clients here count as one, which gets half of the queue
MOST_GROWTH = 0.05
_BEGINNING = 0.3  # fraction of the time in which caches and heaps fill


@dataclass(frozen=True, kw_only=True)
class Soaked:
    """The results of a soak test."""

    soak: Soak
    memory: Sequence[float]  # MiB, every half second
    num_waiting: float  # inputs in the queue at the end
    status: int  # exit status of the server
    log: str

    @property
    def growth(self) -> float:
        """Return the relative growth of memory from the end of the warm-up to the end of the test."""
        settled = self.memory[int(_BEGINNING * len(self.memory)) :]
        fifth = max(1, len(settled) // 5)
        first, last = (statistics.median(part) for part in (settled[:fifth], settled[-fifth:]))
        return last / first - 1

    def faults(self) -> list[str]:
        """Return the violations."""
        found = list(self.soak.faults)
        if not any(status == OK for _, status in self.soak.seen):
            found.append("nothing was answered")
        if self.growth > MOST_GROWTH:
            found.append(
                f"memory grew by {self.growth:.1%}: {self.memory[:: len(self.memory) // 10]}"
            )
        if self.num_waiting:
            found.append(f"{self.num_waiting} inputs waited when nobody did")
        if self.status or "Traceback" in self.log or "failed" in self.log:
            found.append(f"the server ended with {self.status}: {self.log[-2000:]}")
        return found


def soaked(run: Path, words: Sequence[str], *, seconds: float) -> Soaked:
    """Run the soak test against a server for a run."""
    expected = {way: _command_line(run, words, way) for way in WAYS}
    limits = {
        "body-bytes": _BODY_BYTES,
        "body-seconds": _PATIENCE,
        "waiting-seconds": _WAITING,
    }
    options = [word for name, most in limits.items() for word in (f"--limits.{name}", str(most))]
    with _started(run, options) as server:
        soak, memory, num_waiting = asyncio.run(_soaked(server, run.name, expected, seconds))
        server.process.terminate()
        status = server.process.wait(SECONDS)
        log = server.log.read_text()
    return Soaked(soak=soak, memory=memory, num_waiting=num_waiting, status=status, log=log)


@contextmanager
def _started(run: Path, options: Sequence[str]) -> Iterator[ServedProcess]:
    with (
        tempfile.TemporaryDirectory() as folder,
        served([run], Path(folder) / "log", options=options) as server,
    ):
        yield server


async def _soaked(
    server: ServedProcess, model: str, expected: dict[Way, dict[str, str]], seconds: float
) -> tuple[Soak, list[float], float]:
    soak = Soak(
        address=server.address,
        model=model,
        version=await _version(server.address, model),
        expected=expected,
        body_bytes=_BODY_BYTES,
        generator=random.Random(SEED),
    )
    kinds = [good] * _GOOD + [leaving] * 2 + [slow_writer, slow_reader] * 2
    kinds += [never_written, oversized, malformed]
    tasks = [asyncio.create_task(kind(soak)) for kind in kinds]
    memory = list[float]()
    for _ in range(int(2 * seconds)):
        await asyncio.sleep(0.5)
        memory.append(server.resident_mib)
    soak.stop.set()
    await asyncio.gather(*tasks)
    await asyncio.sleep(1.0)  # the server drops abandoned requests
    return soak, memory, await _waiting(server.address)


async def _version(address: Loopback, model: str) -> str:
    async with Connection(address) as connection:
        models = json.loads((await connection.ask("GET", "/v1/models")).body)["models"]
    (found,) = (one for one in models if one["name"] == model)
    return found["version"]


async def _waiting(address: Loopback) -> float:
    async with Connection(address) as connection:
        text = (await connection.ask("GET", "/metrics")).body.decode()
    (line,) = (line for line in text.splitlines() if line.startswith("foveal_waiting_inputs "))
    return float(line.split()[1])


def _command_line(run: Path, texts: Sequence[str], way: Way) -> dict[str, str]:
    """Return the output of `foveal predict` for each text."""
    words = ["predict", str(run), "--format", "jsonl", "--nbest", str(way.nbest)]
    words += ["--attention"] if way.attention else []
    done = subprocess.run(
        [sys.executable, "-m", "foveal.cli", *words],
        input="".join(f"{text}\n" for text in texts),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    return dict(zip(texts, done.stdout.splitlines(), strict=True))


def rows(soaked: Soaked, minutes: float) -> list[Row]:
    """Return the figures."""
    seen = soaked.soak.seen
    bad = sum(count for (kind, _), count in seen.items() if kind != "good")
    five_hundreds = sum(
        count for (_, status), count in seen.items() if status >= 500 and status != REJECTED
    )
    refused = sum(count for (_, status), count in seen.items() if status == REJECTED)
    wrong = len(soaked.soak.faults)
    return [
        Row(name="minutes", value=minutes, unit="min"),
        Row(name="good requests answered", value=seen["good", OK], unit="requests"),
        Row(name="requests of all other kinds", value=bad, unit="requests"),
        Row(name="requests refused with 503", value=refused, unit="requests"),
        Row(
            name="answers equal to the command line's to the byte",
            value=soaked.soak.num_answers,
            unit="answers",
        ),
        Row(name="wrong, lost or doubled", value=wrong, unit="answers", target=0, sense="<="),
        Row(name="status 500", value=five_hundreds, unit="answers", target=0, sense="<="),
        Row(
            name="growth of memory",
            value=100 * soaked.growth,
            unit="%",
            target=100 * MOST_GROWTH,
            sense="<=",
        ),
        Row(
            name="memory, median",
            value=statistics.median(soaked.memory),
            unit="MiB",
            spread=(min(soaked.memory), max(soaked.memory)),
        ),
    ]


def main() -> None:
    """Run the soak test and write the results."""
    parser = argparse.ArgumentParser(description="Put a server through good and bad company.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--runs", type=Path, help="a folder of runs, fitted there if need be")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = fitted(options.runs or Path(folder))[USUAL]
        found = soaked(run, texts(), seconds=60 * options.minutes)
    for (kind, status), count in sorted(found.soak.seen.items()):
        print(f"{kind}: {count:,} with {status or 'no answer'}")
    figures = rows(found, options.minutes)
    for row in figures:
        print(f"{row.name}: {row.value:.4g} {row.unit}{'  MISSED' if row.misses else ''}")
    command = f"python -m benchmarks.soak --minutes {options.minutes:g}"
    result = Results.here(command, packages=("fastapi", "starlette", "uvicorn", "h11"))
    replace(result.with_rows(figures), spec={"seed": SEED}).save(options.out)
    sys.exit("\n".join(found.faults()))


if __name__ == "__main__":
    main()
