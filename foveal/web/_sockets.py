"""The socket that a server listens on."""

import socket

from ..errors import ValueRangeError


def listen(command: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port; an error names the calling command."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is explicitly TCP: only then asyncio disables Nagle's algorithm. Otherwise the second packet of
    # each answer waits 40 ms for the acknowledgment of the first.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen()
    except (OSError, OverflowError) as error:
        bound.close()
        raise ValueRangeError(
            f"{command}: cannot listen on port {port} of {host}: {error}. Use another --port, or 0 "
            f"for a free port."
        ) from error
    return bound
