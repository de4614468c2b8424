"""The computing process and its pipes, from the server's side."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any, TypeAlias, final

from ._interrupting import INTERRUPT
from ._orders import Cancel, Order

_SECONDS_TO_END = 10.0  # time limit for the running batch
_SECONDS_TO_START = 120.0  # on a busy machine, importing torch can take more than ten seconds
_START = "from foveal.serving.computing._worker import main; main()"
Ended: TypeAlias = Callable[[int], None]


@final
class Child:
    """A child process, from its start to its end."""

    def __init__(self) -> None:
        pipes = [Pipe() for _ in range(4)]
        self.orders, self.urgent, self.loads, self._pulse = (ours for ours, _ in pipes)
        theirs = [other.fileno() for _, other in pipes]
        # The child gets the same import path; without -P it would also import from the working folder.
        path = os.pathsep.join(map(os.path.abspath, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, *map(str, theirs)],
            pass_fds=theirs,
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        for _, other in pipes:
            other.close()
        self._has_started = self._is_replaced = False

    def interrupt(self, message: Order | Cancel) -> None:
        """Send a message that is read even during an order."""
        self.urgent.send(message)
        self._process.send_signal(INTERRUPT)

    def is_alive(self, seconds: float) -> bool:
        """Return whether the process sends a heartbeat within this many seconds; raises `OSError` or `EOFError` if
        it has ended. The process sends the first heartbeat when it has started.
        """
        if not self._has_started:
            if not self._pulse.poll(_SECONDS_TO_START):
                return False
            self._pulse.recv()
            self._has_started = True
        self._pulse.send(None)
        is_alive = self._pulse.poll(seconds)
        if is_alive:
            self._pulse.recv()
        return is_alive

    def watch(self, ended: Ended) -> None:
        """Report in another thread when the process ends unexpectedly, with its exit status."""

        def wait() -> None:
            status = self._process.wait()
            if not self._is_replaced:
                ended(status)

        threading.Thread(target=wait, daemon=True).start()

    def kill(self, *, replaced: bool) -> None:
        """End the process immediately, even if it is stopped; with `replaced`, no callback is called."""
        self._is_replaced = replaced
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process after its current computation."""
        pipes: tuple[Any, ...] = (self.orders, self.urgent, self.loads, self._pulse)
        for pipe in pipes:
            pipe.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
