"""From the start of a process to its first answer: time and memory, with the runtime and with torch.

Both start in turn. The runtime is a package of its own here, as `pip install foveal-runtime` makes it, so nothing of the
library is imported.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import foveal.runtime

from ..results import Row
from ._models import Case

ROUNDS = 9
# The peak in /proc: that of getrusage contains the memory of the process that started this one.
_ANSWER = """
import json, sys
from pathlib import Path
{load}
model.predict({text!r})
lines = Path("/proc/self/status").read_text().splitlines()
(peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
print(json.dumps([int(peak), "torch" in sys.modules]))
"""
_RUNTIME = "from foveal_runtime import load; model = load({folder!r})"
_TORCH = "import foveal; model = foveal.load({folder!r})"


class Started(NamedTuple):
    """One process that gave one answer."""

    seconds: float
    megabytes: float
    has_torch: bool


def rows(case: Case) -> Iterator[Row]:
    """Start both in turn."""
    text = case.examples[0].text
    runtime = _ANSWER.format(load=_RUNTIME.format(folder=str(case.export())), text=text)
    library = _ANSWER.format(load=_TORCH.format(folder=str(case.folder)), text=text)
    ours, theirs = list[Started](), list[Started]()
    with TemporaryDirectory() as packages:
        (Path(packages) / "foveal_runtime").symlink_to(Path(foveal.runtime.__file__).parent)
        for _ in range(ROUNDS):
            ours.append(_started(runtime, packages))
            theirs.append(_started(library, None))
    yield from _rows(case, "runtime", ours, 1.0, 100.0)
    yield from _rows(case, "torch", theirs, None, None)
    yield Row(
        name=f"{case.name}, runtime: processes that imported torch",
        value=sum(each.has_torch for each in ours),
        unit="processes",
        target=0,
        sense="<=",
    )


def _rows(
    case: Case, name: str, found: list[Started], seconds: float | None, megabytes: float | None
) -> Iterator[Row]:
    times, sizes = ([each[column] for each in found] for column in (0, 1))
    yield Row(
        name=f"{case.name}, {name}: process start to first answer",
        value=median(times),
        unit="s",
        spread=(min(times), max(times)),
        target=seconds,
        sense=None if seconds is None else "<=",
    )
    yield Row(
        name=f"{case.name}, {name}: peak memory",
        value=median(sizes),
        unit="MB",
        spread=(min(sizes), max(sizes)),
        target=megabytes,
        sense=None if megabytes is None else "<=",
    )


def _started(code: str, packages: str | None) -> Started:
    """Run a program that prints its peak memory and whether it imported torch."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if packages is not None:
        environment["PYTHONPATH"] = packages
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    seconds = time.perf_counter() - began
    kilobytes, has_torch = json.loads(ran.stdout)
    return Started(seconds, kilobytes / 1e3, has_torch)
