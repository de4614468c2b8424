"""The models of a server, by name, and their replacement at run time.

The server checks each folder every second. When its files have changed, or on SIGHUP, the new model is loaded
next to the current one, verified and tested; then it replaces the current one. The old model answers the requests
that it has received. An incomplete or corrupted bundle is rejected, and the old model keeps serving.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, final

from ...errors import FovealError
from ...web._runs import ServedRun
from ..computing._bundles import signature
from ..computing._process import Computing, FaultError
from ..computing._served import Served
from ._metrics import Metrics

SECONDS_BETWEEN_LOOKS = 1.0

_log = logging.getLogger(__name__)


@final
class Models:
    """The served models."""

    def __init__(self, served: Sequence[Served], computing: Computing, metrics: Metrics) -> None:
        self._served = {one.name: one for one in served}
        self._seen = {one.name: signature(one.folder) for one in served}
        self._computing, self._refused = computing, dict[str, str]()
        self._metrics, self._is_told = metrics, asyncio.Event()
        for one in served:
            _warn(one)

    @property
    def by_name(self) -> Mapping[str, Served]:
        """Return the current models by name."""
        return self._served

    def to_data(self) -> dict[str, Any]:
        """Return the public data of all models."""
        return {
            "models": [
                {
                    "name": one.name,
                    "version": one.version,
                    "task": one.questions.spec.kind,
                    "features": one.questions.has_features,
                    "exact": one.is_exact,
                    "refused": self._refused.get(one.name),
                }
                for one in self._served.values()
            ]
        }

    def reload(self) -> None:
        """Reload all models, even if their files have not changed."""
        self._seen.clear()
        self._is_told.set()

    async def watch(self) -> None:
        """Check the folders periodically, forever."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_told.wait(), SECONDS_BETWEEN_LOOKS)
            self._is_told.clear()
            for name, one in list(self._served.items()):
                now = signature(one.folder)
                if self._seen.get(name) != now:
                    self._seen[name] = now
                    await self._replace(one)

    async def load_all(self) -> list[str]:
        """Load every model again; return the names of models that no longer exist."""
        return [one.name for one in list(self._served.values()) if not await self._replace(one)]

    async def _replace(self, old: Served) -> bool:
        """Load the model in a folder, and return whether it replaced the old one."""
        try:
            new = await asyncio.to_thread(self._computing.load, old.name, old.folder)
        except (
            Exception
        ) as error:  # any error: the old model keeps serving, and the watch continues
            self._refused[old.name] = "not loaded; see the log"
            self._metrics.reloads.labels(old.name, "refused").inc()
            reason = str(error) if isinstance(error, FovealError | FaultError) else repr(error)
            _log.error("%s: not reloaded, the old version keeps serving: %s", old.name, reason)
            return False
        self._refused.pop(old.name, None)
        self._served[old.name] = new
        self._metrics.reloads.labels(old.name, "loaded").inc()
        _log.warning("%s: serving version %s instead of %s", old.name, new.version, old.version)
        _warn(new)
        return True


def run_data(served: Served) -> dict[str, Any]:
    """Return the data that the page needs before its first question."""
    return ServedRun(served.name, served.task, served.example).to_data()


def _warn(served: Served) -> None:
    if not served.is_exact:
        _log.warning(
            "%s: on this machine, the last digits of its answers depend on the other inputs of a "
            "batch; see docs/decisions/0012",
            served.name,
        )
