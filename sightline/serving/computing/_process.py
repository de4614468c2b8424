"""The process that computes, from the server's side.

    server:     reads, queues, writes            process:    holds models, computes
                 --- one batch ------------------->
                 <-- its answers ------------------
                 --- a folder to load ------------>           (by a pipe and a thread of its own)
                 <-- loaded, tried ----------------

In one process an event loop and a thread that computes take turns after every operation of the model, of
which there are hundreds in a batch, and each turn is waited for: that cost a third of the throughput. Two
processes wait only for whole batches. See docs/decisions/0013.
"""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias, final

from ...data import Example
from ...errors import SightlineError
from ...tasks import PredictionSpec
from .._batcher import ClosedError
from ._bundles import load_version
from ._orders import Answer, Explain, Failed, Load, Loaded, Order
from ._served import Served, example_inputs

_SECONDS_TO_END = 10.0  # for the batch under way
_START = "from sightline.serving.computing import main; main()"
_Ended: TypeAlias = Callable[[int], None]


class FaultError(RuntimeError):
    """An answer failed through a fault of ours; the text says where."""


@final
class Computing:
    """A process of its own that computes, until it is closed or the server's process has ended."""

    def __init__(self) -> None:
        (self._orders, orders), (self._loads, loads) = Pipe(), Pipe()
        pipes = orders.fileno(), loads.fileno()
        # Python finds there what it found here; without -P also whatever lies in the working folder.
        path = os.pathsep.join(map(os.path.abspath, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, *map(str, pipes)],
            pass_fds=pipes,
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        orders.close()
        loads.close()
        self._numbers = itertools.count()
        self._forgotten: list[int] = []
        self._computes, self._is_loading = asyncio.Lock(), threading.Lock()

    def __enter__(self) -> "Computing":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def load(self, name: str, folder: Path) -> Served:
        """The model in a folder, verified and tried; `BundleError` if it is torn or changed."""
        task, version = load_version(folder)
        inputs, number = example_inputs(folder, task), next(self._numbers)
        with self._is_loading, _while_it_lives():
            self._loads.send(Load(number, folder, version, inputs))
            loaded: Loaded = _checked(self._loads.recv())
        served = Served(
            name=name,
            folder=folder,
            version=version,
            task=task,
            example=inputs[0],
            is_exact=loaded.is_exact,
            number=number,
        )
        # Requests under way hold on to what they asked; the model goes when the last of them has.
        weakref.finalize(served, self._forgotten.append, number)
        return served

    async def answer(
        self,
        served: Served,
        examples: Sequence[Example],
        settings: PredictionSpec,
        *,
        confidence: bool,
    ) -> list[str]:
        """Answers to a batch of one size class, as JSON."""
        return await self._done(Answer(served.number, examples, settings, confidence))

    async def explain(
        self,
        served: Served,
        example: Example,
        *,
        prefix: Sequence[str],
        forced: Mapping[int, Sequence[float]],
    ) -> dict[str, Any]:
        """How a model comes to an answer, as a page draws it."""
        return await self._done(Explain(served.number, example, prefix, forced))

    def watch(self, ended: _Ended) -> None:
        """Tell somebody, in another thread, that the process ended, and with which status."""
        threading.Thread(target=lambda: ended(self._process.wait()), daemon=True).start()

    def close(self) -> None:
        """End the process; what it is at it finishes first."""
        self._orders.close()
        self._loads.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def _done(self, order: Answer | Explain) -> Any:
        """Written and read by the event loop itself: a thread between would cost two changes of thread."""
        async with self._computes:
            forgotten, self._forgotten[:] = tuple(self._forgotten), []
            with _while_it_lives():
                self._orders.send(Order(order, forgotten))
                await _is_readable(self._orders)
                return _checked(self._orders.recv())


@contextmanager
def _while_it_lives() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise ClosedError("The process that computes has ended. Ask again later.") from None


async def _is_readable(pipe: "Connection[Any, Any]") -> None:
    """Until there is something to be read, or the other end is closed."""
    loop = asyncio.get_running_loop()
    there = loop.create_future()
    loop.add_reader(pipe.fileno(), lambda: there.done() or there.set_result(None))
    try:
        await there
    finally:
        loop.remove_reader(pipe.fileno())


def _checked(answer: Any) -> Any:
    if isinstance(answer, Failed):
        raise SightlineError(answer.text) if answer.is_told else FaultError(answer.text)
    return answer
