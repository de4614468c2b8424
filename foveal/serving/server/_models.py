"""The models of a server, by name, and their replacement while it runs.

A folder is looked at every second. When its files have changed, or the server is told to (SIGHUP), the model
is loaded beside the one that serves, verified and tried; then it takes its place at once. What was asked of
the old one is answered by the old one. A bundle that is torn or changed is refused, and the old one serves.
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
    """What is served now."""

    def __init__(self, served: Sequence[Served], computing: Computing, metrics: Metrics) -> None:
        self._served = {one.name: one for one in served}
        self._seen = {one.name: signature(one.folder) for one in served}
        self._computing, self._refused = computing, dict[str, str]()
        self._metrics, self._is_told = metrics, asyncio.Event()
        for one in served:
            _warn(one)

    @property
    def by_name(self) -> Mapping[str, Served]:
        """The models as they are now."""
        return self._served

    def to_data(self) -> dict[str, Any]:
        """What may be known of all."""
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
        """Load all models anew, whether their files have changed or not."""
        self._seen.clear()
        self._is_told.set()

    async def watch(self) -> None:
        """Look at the folders, for ever."""
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
        """Load every model again; return the names of those that are not there any more."""
        return [one.name for one in list(self._served.values()) if not await self._replace(one)]

    async def _replace(self, old: Served) -> bool:
        """Load the model in a folder, and return whether it took the old one's place."""
        try:
            new = await asyncio.to_thread(self._computing.load, old.name, old.folder)
        except Exception as error:  # whatever it is, the old model serves on and so does the watch
            self._refused[old.name] = "not loaded; see the log"
            self._metrics.reloads.labels(old.name, "refused").inc()
            reason = str(error) if isinstance(error, FovealError | FaultError) else repr(error)
            _log.error("%s: not reloaded, the old version keeps serving: %s", old.name, reason)
            return False
        self._refused.pop(old.name, None)
        self._served[old.name] = new
        self._metrics.reloads.labels(old.name, "loaded").inc()
        _log.warning("%s: version %s serves, in place of %s", old.name, new.version, old.version)
        _warn(new)
        return True


def run_data(served: Served) -> dict[str, Any]:
    """What the page must know of a model before it asks anything."""
    return ServedRun(served.name, served.task, served.example).to_data()


def _warn(served: Served) -> None:
    if not served.is_exact:
        _log.warning(
            "%s: on this machine its answers depend, in their last digits, on what is in a batch with "
            "them; see docs/decisions/0012",
            served.name,
        )
