"""The server: one socket on the loopback interface, which no other machine can reach."""

from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from ..web._sockets import listen
from ._guard import TOKEN

HOST = "127.0.0.1"
SECONDS_TO_END = 2  # time limit for open connections


def serve(app: FastAPI, *, port: int = 0, ready: Callable[[str], None], token: str = "") -> None:
    """Serve until interrupted.

    Args:
        app: The application.
        port: The port on 127.0.0.1; 0 takes a free one.
        ready: A callback that receives the address as soon as the server listens.
        token: The token of the application, for the address.
    """
    with listen("explore", HOST, port) as bound:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
        # The socket already listens: early clients wait for a moment until the server runs.
        query = f"?{TOKEN}={token}" if token else ""
        ready(f"http://{HOST}:{bound.getsockname()[1]}/{query}")
        uvicorn.Server(config).run(sockets=[bound])
