"""`foveal serve` as a separate process, with its memory and CPU time."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.serving.loopback import Loopback, loopback

from .started import started

SECONDS = 240  # timeout of start and shutdown on a busy machine
_KIB = 1024


@dataclass(frozen=True)
class ServedProcess:
    """A running server and its log file."""

    process: "subprocess.Popen[str]"
    address: Loopback
    log: Path

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        return f"http://{self.address.host}:{self.address.port}"

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time so far of the server and its compute process."""
        return sum(map(cpu_seconds_of, self._pids))

    @property
    def resident_mib(self) -> float:
        """Return the memory of both processes. Shared libraries count once: half for each process."""
        return sum(map(_resident_mib, self._pids))

    @property
    def _pids(self) -> list[int]:
        return [self.process.pid, *children_of(self.process.pid)]


@contextmanager
def served(
    runs: Sequence[Path | str], log: Path, *, options: Sequence[str] = ()
) -> Iterator[ServedProcess]:
    """Start a server for some runs on a free port, and stop it like a service manager."""
    words = ["serve", *map(str, runs), "--port", "0", *options]
    with log.open("a") as errors, started(words, errors, SECONDS) as (process, address):
        yield ServedProcess(process, loopback(address), log)
        process.terminate()
        process.wait(SECONDS)


def children_of(pid: int) -> list[int]:
    """List the child processes of all threads of a process."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(word) for file in files for word in file.read_text().split()]


def cpu_seconds_of(pid: int) -> float:
    """Return the CPU time of a process so far, over all threads."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    """Return the proportional set size: shared memory is divided among its processes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("Pss:"))
    return int(line.split()[1]) / _KIB
