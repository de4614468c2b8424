"""Models served by replicas of the server, as many as the load needs: Ray Serve around the same application.

The command stays, as a server does: it looks at the folders of the models and, when one has changed, has all
replicas replaced, each new one before an old one goes. What it started lives on if it is killed, on a cluster
that is not its own; started again it takes over.
"""

import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ray import serve
from ray.serve.config import AutoscalingConfig

from ...errors import FovealError, ValueRangeError
from ...serving import Limits
from ...serving.computing._bundles import load_version, signature
from ...serving.server._tokens import Tokens
from ...web._sockets import listen
from ._bundles import packed, unpacked
from ._joining import ray_cluster
from ._replica import Replica, Service

APPLICATION = "foveal"
SURGE_PERCENT = 20  # more replicas than asked for, while old ones are replaced
_AT_ONCE = 128  # requests that a replica is given: some batches
_AT_ONCE_WANTED = 16  # on average; with more to do there are more replicas
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_DRAIN = 60.0  # that requests under way are given when a replica ends
_SECONDS_BETWEEN_CHECKS = 2.0  # whether a replica lives; one that does not is replaced
# The proxy is given more than 5 s to start, which it takes on a busy machine.
_CONTROLLER = {"runtime_env": {"env_vars": {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "30"}}}
_QUIET = {"log_level": "ERROR", "enable_access_log": False}  # paths may hold what somebody typed

_log = logging.getLogger(__name__)


class ReplicasError(FovealError, RuntimeError):
    """Replicas could not be started."""


class Replicas(NamedTuple):
    """How many replicas there are: as many as the load needs, between two bounds."""

    least: int
    most: int

    @classmethod
    def from_text(cls, text: str) -> "Replicas":
        """Bounds as they are given to the command: `2..8`, or `4` for both.

        >>> Replicas.from_text("2..8"), Replicas.from_text("4")
        (Replicas(least=2, most=8), Replicas(least=4, most=4))
        """
        least, _, most = text.partition("..")
        try:
            found = cls(int(least), int(most or least))
        except ValueError:
            found = cls(0, 0)
        if not 1 <= found.least <= found.most:
            raise ValueRangeError(
                f"serve: replicas are a number such as 4 or bounds such as 2..8, got {text!r}."
            )
        return found

    @property
    def with_surge(self) -> int:
        """As many as there may be while old ones are replaced."""
        return self.most + -(-self.most * SURGE_PERCENT // 100)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Models that are to be served, and how.

    Args:
        folders: of models, by the names that they are served under.
        replicas: how many.
        limits: of a request.
        tokens: that must be shown, if there are any.
        is_public: they are asked under any name, not the loopback's.
        specs: a Python file with the parts of the models that are not from foveal, which every replica runs.
    """

    folders: Mapping[str, Path]
    replicas: Replicas
    limits: Limits
    tokens: Tokens
    is_public: bool = False
    specs: Path | None = None

    @property
    def state(self) -> Mapping[str, Any]:
        """Another when the files of a model have changed."""
        return {name: signature(folder) for name, folder in self.folders.items()}

    def application(self) -> serve.Application:
        """The models as they are in their folders now, verified."""
        specs = None if self.specs is None else self.specs.resolve()
        bundles = {name: _verified(folder, specs) for name, folder in self.folders.items()}
        service = Service(bundles, self.limits, self.tokens, self.is_public, specs)
        replica = serve.deployment(
            name="models",
            ray_actor_options={"num_cpus": 1},
            max_ongoing_requests=_AT_ONCE,
            max_queued_requests=self.limits.connections,
            autoscaling_config=AutoscalingConfig(
                min_replicas=self.replicas.least,
                max_replicas=self.replicas.most,
                target_ongoing_requests=_AT_ONCE_WANTED,
            ),
            max_surge_percent=SURGE_PERCENT,
            graceful_shutdown_timeout_s=_SECONDS_TO_DRAIN,
            health_check_period_s=_SECONDS_BETWEEN_CHECKS,
            logging_config=_QUIET,
        )(Replica)
        return replica.bind(service)


def serve_with_replicas(
    deployment: Deployment, *, host: str, port: int, ready: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or Ctrl-C; what is under way then is answered. SIGHUP loads models anew.

    Args:
        deployment: what is served.
        host: the address to listen on, of every machine that has a replica.
        port: 0 takes one that is free.
        ready: is told the address as soon as it can be asked.
    """
    if port == 0:
        with listen("serve", host, port) as bound:
            port = bound.getsockname()[1]
    state, application = deployment.state, deployment.application()
    logging.getLogger("ray.serve").setLevel(logging.ERROR)  # here; its words would drown ours
    name = f"[{host}]" if ":" in host else host
    with ray_cluster(num_cpus=deployment.replicas.with_surge), _told() as is_told:
        serve.start(
            http_options={"host": host, "port": port},
            logging_config=_QUIET,
            controller_options=_CONTROLLER,
        )
        try:
            _roll_out(application)
            ready(f"http://{name}:{port}/")
            _watch(deployment, state, is_told)
        except KeyboardInterrupt:
            serve.delete(APPLICATION)


def _roll_out(application: serve.Application) -> None:
    """Serve this in place of what is served."""
    try:
        serve.run(application, name=APPLICATION, route_prefix="/")
    except RuntimeError as error:
        raise ReplicasError(
            f"serve: no replica started: {error}. Look at the cluster's logs of Ray Serve."
        ) from None


def _watch(deployment: Deployment, state: Mapping[str, Any], is_told: Callable[[], bool]) -> None:
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        now = deployment.state
        if is_told() or now != state:
            state = now
            try:
                _roll_out(deployment.application())
            except (FovealError, OSError) as error:
                _log.error("not loaded anew, the old models serve on: %s", error)
            else:
                _log.warning("all replicas have the models as they are in their folders now")


@contextmanager
def _told() -> Iterator[Callable[[], bool]]:
    """SIGTERM interrupts as Ctrl-C does; says whether there has been a SIGHUP since it was last asked."""
    told = list[int]()
    handlers = {
        signal.SIGTERM: signal.default_int_handler,
        signal.SIGHUP: lambda number, frame: told.append(number),
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}

    def is_told() -> bool:
        has_been = bool(told)
        told.clear()
        return has_been

    try:
        yield is_told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _verified(folder: Path, specs: Path | None) -> dict[str, bytes]:
    """The files of a bundle. It may be written anew at any moment: what was read must be whole too."""
    load_version(folder, specs=specs)
    files = packed(folder)
    with unpacked(files) as copy:
        load_version(copy, specs=specs)
    return files
