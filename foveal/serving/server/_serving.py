"""The state of an application: its models, its queue and its tokens, with their life cycle."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import FovealError
from .._limits import Limits
from ..computing._orders import failed
from ..computing._process import Computing
from ..computing._served import Served
from ._asking import Asking
from ._metrics import Metrics
from ._models import SECONDS_BETWEEN_LOOKS, Models
from ._tokens import Tokens, read_tokens

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Serving:
    """The state of an application; the server closes it."""

    served: Sequence[Served]
    computing: Computing
    limits: Limits
    tokens: Tokens
    token_file: Path | None = None
    metrics: Metrics = field(default_factory=Metrics)
    is_draining: bool = False
    is_replacing: bool = False  # True while a hanging computing process is replaced
    failure: str = ""  # the reason for an unexpected end of the server
    stop: Callable[[], None] = lambda: None  # set by the server that runs the application
    models: Models | None = None  # from the start of the event loop on
    asking: Asking | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Compute batches and watch folders inside the block."""
        self.models = Models(self.served, self.computing, self.metrics)
        self.asking = Asking(self.computing, self.limits, self.metrics)
        self._begin(self.models.watch(), "watches folders")
        if self.token_file is not None:
            self._begin(self._watch_tokens(self.token_file), "watches tokens")
        try:
            yield
        finally:
            for task in list(self._tasks):
                task.cancel()
            await self.asking.close()

    def at_work(self) -> tuple[Models, Asking]:
        """Return the models and the object that sends them requests."""
        assert self.models is not None
        assert self.asking is not None
        return self.models, self.asking

    def reload(self) -> None:
        """Reload all models and tokens."""
        self.at_work()[0].reload()
        if self.token_file is not None:
            self._read_tokens(self.token_file)

    def replace_computing(self) -> None:
        """Replace a hanging computing process: kill it, start another, and load the models there."""
        if not self.is_replacing and not self.is_draining:
            self._begin(self._replace_computing(), "replaces the computing process", ends=True)

    def fail(self, reason: str) -> None:
        """End the server, which reports this reason and exits with a nonzero status."""
        self.failure = self.failure or reason
        self.is_draining = True
        self.stop()

    async def _replace_computing(self) -> None:
        _log.error("the computing process did not respond and is replaced")
        self.metrics.replaced.inc()
        self.is_replacing = True
        await asyncio.to_thread(self.computing.replace)
        refused = await self.at_work()[0].load_all()
        if refused:
            self.fail(
                f"serve: the computing process hung, and its replacement could not load "
                f"{', '.join(refused)}. See the log, and start the server again."
            )
        self.is_replacing = False

    async def _watch_tokens(self, file: Path) -> None:
        seen = _changed(file)
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            now = _changed(file)
            if now != seen:
                seen = now
                self._read_tokens(file)

    def _read_tokens(self, file: Path) -> None:
        try:
            self.tokens.take(read_tokens(file))
        except FovealError as error:
            _log.error("keeping the old tokens: %s", error)
        else:
            _log.warning("reloaded the tokens from %s", file)

    def _begin(self, work: "Coroutine[Any, Any, None]", name: str, *, ends: bool = False) -> None:
        """Run a task; its end is a failure of the server unless it is expected to end."""

        def ended(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            fault = None if task.cancelled() else task.exception()
            if fault is not None or not (ends or task.cancelled()):
                text = failed(fault).text if isinstance(fault, Exception) else repr(fault)
                self.fail(f"serve: the task that {name} ended: {text}. Start the server again.")

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(ended)


def _changed(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
