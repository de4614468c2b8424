"""The server: one socket on the loopback interface, which no other machine can reach."""

import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from ..errors import ValueRangeError
from ._guard import TOKEN

HOST = "127.0.0.1"
SECONDS_TO_END = 2  # that open connections are given


def serve(app: FastAPI, *, port: int = 0, ready: Callable[[str], None], token: str = "") -> None:
    """Serve until interrupted.

    Args:
        app: the application.
        port: of 127.0.0.1; 0 takes one that is free.
        ready: is told the address as soon as it can be opened.
        token: of the application, for the address.
    """
    with listening("explore", HOST, port) as bound:
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SECONDS_TO_END,
        )
        # The socket listens: whoever comes before the server runs waits for a moment.
        query = f"?{TOKEN}={token}" if token else ""
        ready(f"http://{HOST}:{bound.getsockname()[1]}/{query}")
        uvicorn.Server(config).run(sockets=[bound])


def listening(command: str, host: str, port: int) -> socket.socket:
    """A socket that listens; the command is named where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, since asyncio sends small answers at once only then; otherwise the second packet
    # of each waits 40 ms for word of the first.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen()
    except (OSError, OverflowError) as error:
        bound.close()
        raise ValueRangeError(
            f"{command}: cannot listen on port {port} of {host}: {error}. "
            f"Give another --port, or 0 for one that is free."
        ) from error
    return bound
