"""The server: sockets, signals and connection timeouts, around the application."""

import asyncio
import contextlib
import gc
import signal
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast, final

import uvicorn
from fastapi import FastAPI
from typing_extensions import override

from ...errors import ValueRangeError
from ...web._sockets import listen
from .._admission import ClosedError
from ._connections import Connections, plain_protocol, secure_protocol
from ._serving import Serving

# Threads that tokenize long inputs or load models yield to the event loop after this many seconds.
_SWITCH_SECONDS = 0.001
# Connections that wait in the kernel, and the number that the event loop accepts at a time. It reads the requests of
# these before it accepts more: otherwise a burst of connections would be opened, and the oldest of them closed
# for lack of room, before any request is read.
_MOST_PENDING, _TAKEN_AT_ONCE = 2048, 16
SECONDS_TO_DRAIN = 60  # time limit for requests in flight when the server ends


def serve(
    app: FastAPI,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: str = "",
) -> None:
    """Serve until SIGTERM or Ctrl-C, and answer the requests in flight. SIGHUP reloads the models.

    Args:
        app: The result of `build_app`.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        ready: A callback that receives the address as soon as the server listens.
        certificate: A TLS certificate with its chain.
        key: The key of the certificate, if it is in another file.
        proxies: Addresses of trusted proxies, whose forwarded client addresses are used.

    Raises:
        ValueRangeError: The address cannot be used, or there is no valid certificate or key.
        ClosedError: The computing process has failed.
    """
    serving: Serving = app.state.serving
    limits = serving.limits
    for file in (certificate, key):
        if file is not None and not file.is_file():
            raise ValueRangeError(
                f"serve: the file {file} does not exist. Use a file in PEM format."
            )
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()  # full collections skip imported modules; otherwise each blocks all answers for 0.1 s
    with listen("serve", host, port) as bound:
        connections = Connections(
            most=limits.connections,
            most_of_address=limits.address_connections,
            proxies=frozenset(word.strip() for word in proxies.split(",")),
        )
        protocol = plain_protocol(connections, limits.body_seconds)
        if certificate is not None:
            protocol = secure_protocol(connections, protocol, _context(certificate, key))
        config = uvicorn.Config(
            app,
            http=cast("type[asyncio.Protocol]", protocol),
            loop="asyncio",  # the only tested loop, even if others are installed
            ws="none",
            log_level="warning",
            access_log=False,  # paths may contain user input
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies or None,
            backlog=_TAKEN_AT_ONCE,
            h11_max_incomplete_event_size=limits.head_bytes,
            timeout_graceful_shutdown=SECONDS_TO_DRAIN,
        )
        scheme = "http" if certificate is None else "https"
        name = f"[{host}]" if ":" in host else host
        address = f"{scheme}://{name}:{bound.getsockname()[1]}/"
        _Server(config, serving, lambda: ready(address)).run(sockets=[bound])
    if serving.failure:
        raise ClosedError(serving.failure)


@final
class _Server(uvicorn.Server):
    """A server that answers everything on SIGTERM, then ends with status 0."""

    def __init__(self, config: uvicorn.Config, serving: Serving, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._serving, self._ready = serving, ready
        serving.stop = self._stop

    @override
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started and self._serving.models is not None:
            for each in sockets or ():
                each.listen(_MOST_PENDING)
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._serving.reload)
            self._serving.computing.watch(
                lambda status: self._tell(loop, lambda: self._end_with(status)),
                lambda: self._tell(loop, self._serving.replace_computing),
            )
            self._ready()

    @override
    def handle_exit(self, sig: int, frame: Any) -> None:
        # uvicorn would send the signal to the process again afterwards, and end it with that.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self._serving.is_draining = self.should_exit = True

    def _tell(self, loop: asyncio.AbstractEventLoop, told: Callable[[], None]) -> None:
        """Call `told` in the event loop, from another thread; do nothing if the loop has ended."""
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(told)

    def _end_with(self, status: int) -> None:
        """End the server because the computing process has ended; a service manager restarts both."""
        self._serving.fail(
            f"serve: the computing process ended with status {status}, for example because it was "
            f"killed or ran out of memory. Start the server again."
        )

    def _stop(self) -> None:
        self.should_exit = True


def _context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ValueRangeError(
            f"serve: cannot read the certificate {certificate} and its key: {error}. Use a matching "
            f"pair of files in PEM format."
        ) from error
    return context
