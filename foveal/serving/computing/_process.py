"""The computing process, from the server's side.

    server:     reads, queues, writes            process:    holds models, computes
                 --- one batch ------------------->
                 <-- its answers ------------------
                 --- a folder to load ------------>           (through a separate pipe and thread)
                 <-- loaded, tried ----------------

In one process, an event loop and a computing thread would compete for the interpreter after every operation of
the model, hundreds of times in a batch: that cost a third of the throughput. Two processes wait only for whole
batches. See docs/decisions/0013.
"""

import asyncio
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, final

from ...data import Example
from ...errors import FovealError
from ...tasks import PredictionSpec
from .._admission import ClosedError
from .._engines import Engine
from .._pace import Timed
from ._bundles import load_version
from ._child import Child, Ended
from ._orders import Answer, Cancel, Explain, Failed, Load, Loaded, Order
from ._served import Served, example_inputs

_LOOKS = 4  # number of checks of the process during the maximum silence


class FaultError(RuntimeError):
    """Raised when an answer failed because of our own bug; the message contains its location."""


@final
class Computing:
    """A separate process that computes, until it is closed or the server process ends.

    Args:
        silent_seconds: The maximum time without a heartbeat before the process counts as hanging.
        specs: A Python file with the parts of models that are not from foveal; both processes run it.
        engine: The engine of the models: torch, onnx, or auto.
        device: The device of the models: auto, cpu, cuda, cuda:N or mps.
    """

    def __init__(
        self,
        *,
        silent_seconds: float = 10.0,
        specs: Path | None = None,
        engine: Engine = "auto",
        device: str = "cpu",
    ) -> None:
        self._child, self._silent_seconds = Child(), silent_seconds
        self._specs = specs
        self._engine: Engine = engine
        self._device = device
        self._numbers, self._order_numbers = itertools.count(), itertools.count()
        self._oldest = 0  # models with smaller numbers belonged to a replaced process
        self._forgotten: list[int] = []
        self._under_way: int | None = None  # the order that can be cancelled
        self._computes, self._interrupts = asyncio.Lock(), asyncio.Lock()
        self._is_loading, self._is_closed = threading.Lock(), threading.Event()

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
        """Return the model in a folder, verified and tested; raises `BundleError` if it cannot be served."""
        task, version = load_version(folder, specs=self._specs)
        inputs, number = example_inputs(folder, task), next(self._numbers)
        child = self._child
        with self._is_loading, _while_it_lives():
            child.loads.send(
                Load(number, folder, version, inputs, self._specs, self._engine, self._device)
            )
            loaded: Loaded = _checked(child.loads.recv())
        served = Served(
            name=name,
            folder=folder,
            version=version,
            task=task,
            example=inputs[0],
            is_exact=loaded.is_exact,
            engine=loaded.engine,
            number=number,
        )
        # Requests in flight keep a reference to their model, which is freed after the last of them.
        weakref.finalize(served, self._forgotten.append, number)
        return served

    async def answer(
        self,
        served: Served,
        examples: Sequence[Example],
        settings: PredictionSpec,
        *,
        confidence: bool,
        interrupting: bool = False,
    ) -> Timed:
        """Return the answers to a batch of one size class, each as JSON."""
        order = Answer(served.number, examples, settings, confidence)
        return await self._done(order, interrupting=interrupting)

    async def explain(
        self,
        served: Served,
        example: Example,
        *,
        prefix: Sequence[str],
        forced: Mapping[int, Sequence[float]],
        interrupting: bool = False,
    ) -> Timed:
        """Return the explanation of an answer, as JSON for the page."""
        order = Explain(served.number, example, prefix, forced)
        return await self._done(order, interrupting=interrupting)

    def cancel(self) -> None:
        """Cancel the order that does not interrupt; its caller gets a `FaultError`."""
        if self._under_way is not None:
            number, self._under_way = self._under_way, None
            with suppress(OSError):  # the process has ended
                self._child.interrupt(Cancel(number))

    def watch(self, ended: Ended, hangs: Callable[[], None] | None = None) -> None:
        """Report in another thread that the process ended, with its exit status, or that it hangs. Without a
        callback for hanging, a process that hangs is killed.
        """
        self._ended = ended
        self._child.watch(ended)

        def watch() -> None:
            while not self._is_closed.wait(self._silent_seconds / _LOOKS):
                child = self._child
                with suppress(OSError, EOFError):  # it has ended, which the other thread reports
                    if child.is_alive(self._silent_seconds) or self._is_closed.is_set():
                        continue
                    if hangs is None:
                        child.kill(replaced=False)
                    else:
                        hangs()
                        self._is_closed.wait(self._silent_seconds)

        threading.Thread(target=watch, daemon=True).start()

    def replace(self) -> None:
        """Kill the process and start a new one, without models: load them again. Requests for earlier models
        fail with `ClosedError`.
        """
        self._child.kill(replaced=True)
        self._oldest, self._child = next(self._numbers), Child()
        self._child.watch(self._ended)

    def close(self) -> None:
        """End the process after its current computation."""
        self._is_closed.set()
        self._child.close()

    async def _done(self, order: Answer | Explain, *, interrupting: bool) -> Timed:
        """Send an order and read the reply in the event loop: a thread in between would cost two context switches."""
        async with self._interrupts if interrupting else self._computes:
            child, number = self._child, next(self._order_numbers)
            if order.number < self._oldest:
                raise ClosedError("The model is being reloaded. Retry later.")
            forgotten, self._forgotten[:] = tuple(self._forgotten), []
            with _while_it_lives():
                if interrupting:
                    child.interrupt(Order(number, order, forgotten))
                    await _is_readable(child.urgent)
                    return _checked_answer(child.urgent.recv())
                child.orders.send(Order(number, order, forgotten))
                self._under_way = number
                try:
                    await _is_readable(child.orders)
                finally:
                    self._under_way = None
                return _checked_answer(child.orders.recv())


@contextmanager
def _while_it_lives() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise ClosedError("The computing process has ended. Retry later.") from None


async def _is_readable(pipe: "Connection[Any, Any]") -> None:
    """Wait until there is data to read, or the other end is closed."""
    loop = asyncio.get_running_loop()
    there = loop.create_future()
    loop.add_reader(pipe.fileno(), lambda: there.done() or there.set_result(None))
    try:
        await there
    finally:
        loop.remove_reader(pipe.fileno())


def _checked_answer(answer: Timed) -> Timed:
    _checked(answer.value)
    return answer


def _checked(answer: Any) -> Any:
    if isinstance(answer, Failed):
        raise FovealError(answer.text) if answer.is_told else FaultError(answer.text)
    return answer
