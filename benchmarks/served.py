"""`sightline serve` as a process of its own, and what the kernel says of it."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sightline.cli._loopback import Loopback, loopback

from .started import started

SECONDS = 120  # to start, and to end, on a busy machine
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
        """Processor time that it has used so far, of all its threads."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mib(self) -> float:
        """Memory that it has in use."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / _KIB


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
