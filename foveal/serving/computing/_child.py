"""The process that computes and the pipes to it, from the server's side."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any, TypeAlias, final

from ._interrupting import INTERRUPT
from ._orders import Cancel, Order

_SECONDS_TO_END = 10.0  # for the batch under way
_SECONDS_TO_START = 120.0  # on a busy machine, importing torch alone can take more than ten
_START = "from foveal.serving.computing._worker import main; main()"
Ended: TypeAlias = Callable[[int], None]


@final
class Child:
    """A process, from its start to its end."""

    def __init__(self) -> None:
        pipes = [Pipe() for _ in range(4)]
        self.orders, self.urgent, self.loads, self._pulse = (ours for ours, _ in pipes)
        theirs = [other.fileno() for _, other in pipes]
        # Python finds there what it found here; without -P also whatever is in the working folder.
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
        """Send a message that is read even while an order is under way."""
        self.urgent.send(message)
        self._process.send_signal(INTERRUPT)

    def is_alive(self, seconds: float) -> bool:
        """Return whether the process gives a sign of life within so many seconds; `OSError` or `EOFError`
        if it has ended. The first sign comes from the process itself, when it has started.
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
        """Tell, in another thread, that the process ended by itself, and with which status."""

        def wait() -> None:
            status = self._process.wait()
            if not self._is_replaced:
                ended(status)

        threading.Thread(target=wait, daemon=True).start()

    def kill(self, *, replaced: bool) -> None:
        """End the process at once, even if it is stopped; `replaced`: nobody is told."""
        self._is_replaced = replaced
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process, after what it computes now."""
        pipes: tuple[Any, ...] = (self.orders, self.urgent, self.loads, self._pulse)
        for pipe in pipes:
            pipe.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
