"""`foveal serve` as a separate process, with its memory and CPU time."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.serving.loopback import Loopback, loopback

from .started import started

SECONDS = 240  # to start, and to end, on a busy machine
_KIB = 1024


@dataclass(frozen=True)
class ServedProcess:
    """A server that runs, and the file that its log goes to."""

    process: "subprocess.Popen[str]"
    address: Loopback
    log: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.address.host}:{self.address.port}"

    @property
    def cpu_seconds(self) -> float:
        """Processor time that it has used so far, and the process that computes for it."""
        return sum(map(cpu_seconds_of, self._pids))

    @property
    def resident_mib(self) -> float:
        """Memory that the two have in use. What both have of libraries counts once: half for each."""
        return sum(map(_resident_mib, self._pids))

    @property
    def _pids(self) -> list[int]:
        return [self.process.pid, *children_of(self.process.pid)]


@contextmanager
def served(
    runs: Sequence[Path | str], log: Path, *, options: Sequence[str] = ()
) -> Iterator[ServedProcess]:
    """A server for some runs, on a port that is free; ended as a service manager ends it."""
    words = ["serve", *map(str, runs), "--port", "0", *options]
    with log.open("a") as errors, started(words, errors, SECONDS) as (process, address):
        yield ServedProcess(process, loopback(address), log)
        process.terminate()
        process.wait(SECONDS)


def children_of(pid: int) -> list[int]:
    """Processes that any thread of a process has started."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for file in files for word in file.read_text().split()]


def cpu_seconds_of(pid: int) -> float:
    """Processor time that a process has used so far, all of its threads."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    """Memory that is shared with others counts in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("Pss:"))
    return int(line.split()[1]) / _KIB
