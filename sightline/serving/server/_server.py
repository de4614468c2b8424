"""The server: sockets, signals and the clock of a connection, around the application."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import uvicorn
from fastapi import FastAPI
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...errors import ValueRangeError
from ...explorer import listening
from .._batcher import ClosedError
from ._app import Serving

SECONDS_TO_DRAIN = 60  # that requests under way are given when the server ends


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
    """Serve until SIGTERM or Ctrl-C; what is under way then is answered. SIGHUP loads models anew.

    Args:
        app: what `build_app` made.
        host: the address to listen on.
        port: 0 takes one that is free.
        ready: is told the address as soon as it can be asked.
        certificate: for TLS, with its chain.
        key: of the certificate, where it is not in that file.
        proxies: addresses of proxies whose word for where a request comes from is taken.
    """
    serving: Serving = app.state.serving
    limits = serving.limits
    for file in (certificate, key):
        if file is not None and not file.is_file():
            raise ValueRangeError(f"serve: there is no file {file}. Give a file in PEM format.")
    with listening("serve", host, port) as bound:
        config = uvicorn.Config(
            app,
            http=_punctual(limits.body_seconds),
            loop="asyncio",  # whatever else is installed: this is the one that is tested
            ws="none",
            log_level="warning",
            access_log=False,  # paths may hold what somebody typed
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies or None,
            limit_concurrency=limits.connections,
            h11_max_incomplete_event_size=limits.head_bytes,
            timeout_graceful_shutdown=SECONDS_TO_DRAIN,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        scheme = "http" if certificate is None else "https"
        name = f"[{host}]" if ":" in host else host
        address = f"{scheme}://{name}:{bound.getsockname()[1]}/"
        _Server(config, serving, lambda: ready(address)).run(sockets=[bound])
    if serving.failure:
        raise ClosedError(serving.failure)


@final
class _Server(uvicorn.Server):
    """Ends by itself, with status 0, when it is told to and everything has been answered."""

    def __init__(self, config: uvicorn.Config, serving: Serving, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._serving, self._ready = serving, ready
        serving.stop = self._stop

    @override
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started and self._serving.models is not None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._serving.models.reload)
            self._serving.computing.watch(lambda status: self._told(loop, status))
            self._ready()

    @override
    def handle_exit(self, sig: int, frame: Any) -> None:
        # uvicorn would send the signal to the process once more afterwards, and end it with that.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self._serving.is_draining = self.should_exit = True

    def _told(self, loop: asyncio.AbstractEventLoop, status: int) -> None:
        """In another thread. When the server has ended first, there is no loop any more."""
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end_with, status)

    def _end_with(self, status: int) -> None:
        """The process that computes has ended: so does the server, and a service manager starts both."""
        self._serving.fail(
            f"serve: the process that computes ended with status {status}, as it does when it is killed "
            f"or there is too little memory. Start the server again."
        )

    def _stop(self) -> None:
        self.should_exit = True


def _punctual(seconds: float) -> type[H11Protocol]:
    """Connections on which the head of a request comes within so many seconds, or which are closed."""

    class Punctual(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        @override
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        @override
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._late is None:
                self._wait()

        @override
        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._late = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Punctual
