"""How much can one client harm the others: fairness under attack, and ten minutes of attack with bad reloads.

    python -m benchmarks.serving.attack fairness
    python -m benchmarks.serving.attack soak --minutes 10

A real server and real clients run in separate processes on the loopback interface. In `fairness`, a victim sends
one word every quarter of a second, and phases with and without the attack alternate: other load of the
machine is the same in both. In `soak`, all attacks run at once, next to honest clients whose answers are
compared byte by byte, while the folder of the model gets good, NaN and truncated bundles in turn.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Results, Row
from benchmarks.served import ServedProcess, served
from benchmarks.serving.load import OK

from .attacked_soak import Soaked, soaked
from .attackers import ATTACKS

RUN = Path("tests/fixtures/bundles/0.1.0/transduction")
OUT = Path("results/serving_attacks.json")
PHASE, ROUNDS = 10.0, 4
MOST_RATIO, MOST_HEALTH = 3.0, 1.0
_SETTLING = 1.0  # seconds at the start of a phase that are not counted
_BEFORE = 2.0  # seconds for all clients to start
TOKENS = {name: f"a-token-for-the-{name}-of-attacks" for name in ("victim", "attacker", "honest")}


class Sample(NamedTuple):
    """One request of the victim, or of a health check."""

    at: float
    status: int
    seconds: float


@contextmanager
def attacked(run: Path, *options: str) -> Iterator[ServedProcess]:
    """Start a server with a token for each client."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        tokens.write_text("".join(f"{token}\n" for token in TOKENS.values()))
        words = ["--tokens", str(tokens), *options]
        with served([f"model={run}"], Path(folder) / "log", options=words) as server:
            yield server
            assert "Traceback" not in server.log.read_text(), server.log.read_text()[-2000:]


@contextmanager
def client(
    server: ServedProcess, kind: str, token: str, start: float, phase: float, until: float
) -> Iterator["subprocess.Popen[str]"]:
    """Start a client in a separate process."""
    words = [kind, server.address.port, token, "model", start, phase, until]
    command = [sys.executable, "-m", "benchmarks.serving.attackers", *map(str, words)]
    # A separate session: Linux shares CPUs fairly between sessions, as if they were separate machines.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def fairness(run: Path, names: Sequence[str], *, phase: float, rounds: int) -> list[Row]:
    """Measure some attacks, one after the other."""
    rows = list[Row]()
    with attacked(run) as server:
        for name in names:
            rows += _fairness(server, name, phase, rounds)
    return rows


def _fairness(server: ServedProcess, name: str, phase: float, rounds: int) -> list[Row]:
    start = time.time() + _BEFORE
    times = (start, phase, start + 2 * rounds * phase)
    loads = list[float]()
    with ExitStack() as stack:
        victim, health = (
            stack.enter_context(client(server, kind, TOKENS["victim"], *times))
            for kind in ("victim", "health")
        )
        stack.enter_context(client(server, name, TOKENS["attacker"], *times))
        while time.time() < times[-1]:
            time.sleep(1.0)
            loads.append(os.getloadavg()[0])
        asked, checked = (_samples(process) for process in (victim, health))
    quiet, during = (_phases(asked, start, phase, which) for which in (0, 1))
    ratio = _p99(during) / _p99(quiet)
    refused = sum(sample.status != OK for sample in asked)
    slowest = max(sample.seconds if sample.status == OK else 60.0 for sample in checked)
    return [
        Row(name=f"{name}, victim refused", value=refused, unit="requests", target=0, sense="<="),
        Row(name=f"{name}, victim p99, quiet", value=1000 * _p99(quiet), unit="ms"),
        Row(name=f"{name}, victim p99, attacked", value=1000 * _p99(during), unit="ms"),
        Row(
            name=f"{name}, p99 attacked to quiet",
            value=ratio,
            unit="x",
            target=MOST_RATIO,
            sense="<=",
        ),
        Row(
            name=f"{name}, slowest health check",
            value=slowest,
            unit="s",
            target=MOST_HEALTH,
            sense="<=",
        ),
        Row(name=f"{name}, requests of the victim", value=len(asked), unit="requests"),
        Row(name=f"{name}, load of the machine", value=statistics.mean(loads), unit="processes"),
    ]


def _samples(process: "subprocess.Popen[str]") -> list[Sample]:
    assert process.stdout is not None
    return [Sample(*json.loads(line)) for line in process.stdout]


def _phases(samples: Sequence[Sample], start: float, phase: float, which: int) -> list[Sample]:
    """Return the samples of every second phase, without its start."""
    found = list[Sample]()
    for sample in samples:
        number, into = divmod(sample.at - start, phase)
        if number >= 0 and number % 2 == which and into >= _SETTLING:
            found.append(sample)
    return found


def _p99(samples: Sequence[Sample]) -> float:
    ordered = sorted(sample.seconds for sample in samples)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def _soaked(run: Path, seconds: float) -> Soaked:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        with ExitStack() as stack:
            return soaked(
                run,
                model,
                seconds=seconds,
                start=lambda: stack.enter_context(attacked(model)),
                attack=lambda server, kind, until: stack.enter_context(
                    client(server, kind, TOKENS["attacker"], time.time(), 5.0, until)
                ),
                token=TOKENS["honest"],
            )


def soak(run: Path, minutes: float) -> list[Row]:
    """Measure a long attack."""
    found = _soaked(run, 60 * minutes)
    statuses = Counter(found.statuses)
    print(
        dict(statuses),
        found.faults[:5],
        found.refusals,
        {n: round(m) for n, m in found.memory.items()},
    )
    first, last = found.memory[min(found.memory)], found.memory[max(found.memory)]
    rows = [
        Row(name="soak, minutes", value=minutes, unit="min"),
        Row(name="soak, honest answers right to the byte", value=found.num_right, unit="answers"),
        Row(
            name="soak, honest answers wrong",
            value=len(found.faults),
            unit="answers",
            target=0,
            sense="<=",
        ),
        Row(
            name="soak, honest requests without an answer",
            value=statuses[0],
            unit="requests",
            target=0,
            sense="<=",
        ),
        Row(name="soak, status 500", value=statuses[500], unit="answers", target=0, sense="<="),
        Row(name="soak, honest requests refused", value=statuses[503], unit="requests"),
        Row(name="soak, good bundles taken", value=found.num_loaded, unit="reloads"),
        Row(name="soak, bad bundles refused", value=found.num_refused, unit="reloads"),
        Row(
            name="soak, bad bundles taken",
            value=found.num_bad_taken,
            unit="reloads",
            target=0,
            sense="<=",
        ),
        Row(
            name="soak, growth of memory",
            value=100 * (last / first - 1),
            unit="%",
            target=10,
            sense="<=",
        ),
    ]
    return rows + [
        Row(name=f"soak, memory after {number} min", value=value, unit="MiB")
        for number, value in found.memory.items()
    ]


def main() -> None:
    """Run the attacks and write the results."""
    parser = argparse.ArgumentParser(description="Attack a server of this machine.")
    parser.add_argument("what", choices=("fairness", "soak"))
    parser.add_argument("--attacks", nargs="+", choices=tuple(ATTACKS), default=tuple(ATTACKS))
    parser.add_argument("--phase", type=float, default=PHASE, help="seconds with or without attack")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--run", type=Path, default=RUN)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    if options.what == "fairness":
        rows = fairness(options.run, options.attacks, phase=options.phase, rounds=options.rounds)
    else:
        rows = soak(options.run, options.minutes)
    for row in rows:
        print(f"{row.name}: {row.value:.4g} {row.unit}{'  MISSED' if row.misses else ''}")
    made_by = "python -m benchmarks.serving.attack fairness, soak"
    before = Results.load(options.out).rows if options.out.is_file() else ()
    result = Results.here(made_by, packages=("fastapi", "starlette", "uvicorn", "h11"))
    result = replace(result, rows=before).with_rows(rows)
    result.save(options.out)
    sys.exit(1 if result.missed() else 0)


if __name__ == "__main__":
    main()
