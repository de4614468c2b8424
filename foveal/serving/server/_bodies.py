"""The bytes of all request bodies in flight, bounded and shared between clients.

    own bytes + new bytes <= most - bytes of all

One client gets at most half of the memory, two get a third each, and so on: there is always some left for one
more client (dynamic thresholds, Choudhury and Hahne 1998).
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from starlette.datastructures import Headers
from starlette.types import Receive

_MOST_DIGITS = 20  # in a valid content length


class TooLongError(ValueError):
    """Raised for a body that exceeds the limit of one body."""


class FullError(ValueError):
    """Raised when there is no memory for the body now."""


class GoneError(ConnectionError):
    """Raised when the client disconnects before the body is complete."""


@final
class Bodies:
    """The memory for bodies.

    Args:
        most: The maximum total size, in bytes.
        longest: The maximum size of one body, in bytes.
    """

    def __init__(self, *, most: int, longest: int) -> None:
        self._most, self._longest = most, longest
        self._total, self._of_clients = 0, Counter[str]()

    @contextmanager
    def reserved(self, client: str) -> Iterator["Body"]:
        """Yield a body of a client; its bytes are free again at the end of the block."""
        body = Body(self, client)
        try:
            yield body
        finally:
            self._total -= body.reserved
            self._of_clients[client] -= body.reserved
            if not self._of_clients[client]:
                del self._of_clients[client]

    def reserve(self, client: str, size: int, so_far: int) -> None:
        """Reserve more bytes for a body, or raise an error."""
        if so_far + size > self._longest:
            raise TooLongError
        if self._of_clients[client] + size > self._most - self._total:
            raise FullError
        self._total += size
        self._of_clients[client] += size


@final
class Body:
    """One body, from its first byte until its request is answered."""

    def __init__(self, bodies: Bodies, client: str) -> None:
        self._bodies, self._client, self.reserved = bodies, client, 0

    async def read(self, headers: Headers, receive: Receive) -> bytes:
        """Read the whole body; raises `TooLongError`, `FullError` or `GoneError`."""
        said = headers.get("content-length", "0")
        if len(said) > _MOST_DIGITS:
            raise TooLongError
        self._reserve(int(said) if said.isdecimal() else 0)
        # One block of memory for the whole body: freeing it returns it to the system at once.
        content, size = bytearray(self.reserved), 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise GoneError
            part = message.get("body", b"")
            if size + len(part) > self.reserved:  # a body without a content length
                self._reserve(size + len(part) - self.reserved)
            content[size : size + len(part)] = part
            size += len(part)
            if not message.get("more_body", False):
                return bytes(content[:size])

    def _reserve(self, size: int) -> None:
        self._bodies.reserve(self._client, size, self.reserved)
        self.reserved += size


async def drain(receive: Receive, *, most: int, seconds: float) -> None:
    """Read and discard the rest of a body, up to a size and a time limit: the sender then reads the answer before the
    connection closes.
    """
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while size <= most:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
