"""Models served by an autoscaled number of replicas: Ray Serve around the server application.

The command keeps running, like a server: it watches the folders of the models and, when one has changed, replaces
all replicas, each new one before an old one ends. On an external cluster, the replicas survive if the command is
killed; after a restart, it takes over.
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
from ...serving._engines import Engine
from ...serving.computing._bundles import load_version, signature
from ...serving.server._tokens import Tokens
from ...web._sockets import listen
from ._bundles import packed, unpacked
from ._gpus import gpu_share
from ._joining import ray_cluster
from ._replica import Replica, Service

APPLICATION = "foveal"
SURGE_PERCENT = 20  # additional replicas while old ones are replaced
_AT_ONCE = 128  # concurrent requests per replica: several batches
_AT_ONCE_WANTED = 16  # target average; at higher load there are more replicas
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_DRAIN = 60.0  # time limit for requests in flight when a replica ends
_SECONDS_BETWEEN_CHECKS = 2.0  # health checks; a failed replica is replaced
# The proxy may take longer than 5 s to start on a busy machine.
_CONTROLLER = {"runtime_env": {"env_vars": {"RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "30"}}}
_QUIET = {"log_level": "ERROR", "enable_access_log": False}  # paths may contain user input

_log = logging.getLogger(__name__)


class ReplicasError(FovealError, RuntimeError):
    """Raised if replicas cannot be started."""


class Replicas(NamedTuple):
    """Bounds on the number of replicas; the load determines the number between them."""

    least: int
    most: int

    @classmethod
    def from_text(cls, text: str) -> "Replicas":
        """Parse the bounds: `2..8`, or `4` for both.

        Args:
            text: Bounds as text.

        Returns:
            The bounds.

        Raises:
            ValueRangeError: The text has another form, or the bounds are not in order.

        Examples:
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
                f"serve: --replicas must be a number such as 4 or a range such as 2..8, got {text!r}. "
                f"Correct it."
            )
        return found

    @property
    def with_surge(self) -> int:
        """The maximum number of replicas while old ones are replaced."""
        return self.most + -(-self.most * SURGE_PERCENT // 100)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A deployment: the models and how to serve them.

    Args:
        folders: The folders of the models, by name.
        replicas: The bounds on the number of replicas.
        limits: The limits of a request.
        tokens: The accepted bearer tokens, if any.
        is_public: Accept requests for any host name, not only for loopback names.
        specs: A Python file with the parts of the models that are not from foveal, which every replica runs.
        engine: The engine of the models: torch, onnx, or auto.
        device: The device of the models: auto, cpu or cuda. Replicas share the GPUs of the cluster.
    """

    folders: Mapping[str, Path]
    replicas: Replicas
    limits: Limits
    tokens: Tokens
    is_public: bool = False
    specs: Path | None = None
    engine: Engine = "auto"
    device: str = "cpu"

    @property
    def state(self) -> Mapping[str, Any]:
        """Return a signature that changes with the files of the models."""
        return {name: signature(folder) for name, folder in self.folders.items()}

    def application(self) -> serve.Application:
        """Load and verify the current models, and return the application, for the cluster of this process."""
        share = gpu_share(self.device, self.replicas.with_surge)
        used = "cuda" if share else "cpu"
        specs = None if self.specs is None else self.specs.resolve()
        bundles = {name: _verified(folder, specs) for name, folder in self.folders.items()}
        service = Service(
            bundles, self.limits, self.tokens, self.is_public, specs, self.engine, used
        )
        replica = serve.deployment(
            name="models",
            ray_actor_options={"num_cpus": 1, "num_gpus": share},
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
    """Serve until SIGTERM or Ctrl-C, and answer the requests in flight. SIGHUP reloads the models.

    Args:
        deployment: The models and how to serve them.
        host: The address to listen on, on every machine with a replica.
        port: The port; 0 takes a free one.
        ready: A callback that receives the address as soon as the server listens.
    """
    if port == 0:
        with listen("serve", host, port) as bound:
            port = bound.getsockname()[1]
    state = deployment.state
    logging.getLogger("ray.serve").setLevel(
        logging.ERROR
    )  # in this process; its messages would hide ours
    name = f"[{host}]" if ":" in host else host
    with ray_cluster(num_cpus=deployment.replicas.with_surge), _told() as is_told:
        serve.start(
            http_options={"host": host, "port": port},
            logging_config=_QUIET,
            controller_options=_CONTROLLER,
        )
        try:
            _roll_out(deployment.application())
            ready(f"http://{name}:{port}/")
            _watch(deployment, state, is_told)
        except KeyboardInterrupt:
            serve.delete(APPLICATION)


def _roll_out(application: serve.Application) -> None:
    """Replace the running deployment by this one."""
    try:
        serve.run(application, name=APPLICATION, route_prefix="/")
    except RuntimeError as error:
        raise ReplicasError(
            f"serve: no replica started: {error}. Check the Ray Serve logs of the cluster."
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
                _log.error("could not reload, the old models keep serving: %s", error)
            else:
                _log.warning("all replicas have reloaded the models")


@contextmanager
def _told() -> Iterator[Callable[[], bool]]:
    """Handle SIGTERM like Ctrl-C; yields a function that returns whether SIGHUP arrived since its last call."""
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
    """Return the verified files of a bundle. It may be overwritten at any moment: the files read must be consistent."""
    load_version(folder, specs=specs)
    files = packed(folder)
    with unpacked(files) as copy:
        load_version(copy, specs=specs)
    return files
