"""Load bundles one after another in a separate process, which cannot open a connection."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.errors import FovealError
from foveal.serving._answer import answer_json
from tests.tasks.hostile import STORED

_INPUTS = ("ab", "the good old ship", "a cat\tthe ship")


class Outcome(NamedTuple):
    """The outcome of loading a bundle."""

    name: str
    kind: str  # "loaded" if it also answers, or the name of the error
    cause: str  # the name of the error that caused it
    seconds: float  # CPU time
    megabytes: float  # peak memory above the memory before loading
    text: str


def load_all(folders: Sequence[Path]) -> list[Outcome]:
    """Load bundles in a new process, which ends if one bundle takes more than a minute."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.tasks.hostile_loading"],
        input="\n".join(map(str, folders)),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    outcomes = [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]
    assert len(outcomes) == len(folders), f"after {outcomes[-1:]}: {done.stderr[-2000:]}"
    return outcomes


def _main() -> None:
    def refuse(*_: object, **__: object) -> None:
        os.write(2, b"a connection was tried\n")
        os._exit(3)

    socket.socket.connect = socket.getaddrinfo = refuse
    load_bundle(STORED[0])
    most = 8 << 30
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for folder in map(Path, sys.stdin.read().splitlines()):
        signal.alarm(60)
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current usage
        before, start = _memory("VmRSS"), time.process_time()
        kind, cause, text = "loaded", "", ""
        try:
            task = load_bundle(folder)
            seconds, peak = time.process_time() - start, _memory("VmHWM") - before
            _answer(task)
        except Exception as error:  # the test must see every error
            kind, cause, text = type(error).__name__, type(error.__cause__).__name__, str(error)
            seconds, peak = time.process_time() - start, _memory("VmHWM") - before
        print(json.dumps((folder.name, kind, cause, seconds, peak, text)), flush=True)  # noqa: T201


def _answer(task: Any) -> None:
    """Predict answers that JSON can hold; a setting may make the task refuse to answer."""
    examples = [Example(text) for text in _INPUTS]
    try:
        for example, prediction in zip(examples, task.predict(examples), strict=True):
            answer_json(example, prediction)
    except FovealError:
        return


def _memory(name: str) -> float:
    """Return a memory figure of this process in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    _main()
