"""Connections to a server on this machine with minimal client overhead.

A full client with retries and pools takes as long as a small model, and a load generator that is slower than
the server measures itself. This module therefore speaks HTTP/1.1 on a bare keep-alive connection.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from typing import NamedTuple, Self, final
from urllib.parse import urlsplit

from foveal.errors import ValueRangeError

_MOST_HEAD = 64 * 1024  # bytes of a header line; longer lines are an error


class Loopback(NamedTuple):
    """A loopback address, which is always on this machine."""

    host: str
    port: int


def loopback(url: str) -> Loopback:
    """Return the address of a URL; raise an error if it may be on another machine.

    >>> loopback("http://localhost:8000")
    Loopback(host='127.0.0.1', port=8000)
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        # No name resolution: a resolver may return any address.
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        parts, address, port = urlsplit(""), None, 0
    if address is None or not address.is_loopback or parts.scheme != "http":
        raise ValueRangeError(
            f"A load is put only on a server of this machine: expected http://127.0.0.1:PORT, "
            f"http://localhost:PORT or http://[::1]:PORT, got {url!r}. Run the command where the "
            f"server runs."
        )
    return Loopback(str(address), port)


class Reply(NamedTuple):
    """The answer of a server."""

    status: int
    headers: dict[str, str]
    body: bytes


@final
class Connection:
    """One connection, opened when it is needed and kept until one side closes it."""

    def __init__(self, address: Loopback, *, token: str | None = None) -> None:
        self._address = address
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._fields = f"host: {host}:{address.port}\r\n"
        if token is not None:
            self._fields += f"authorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def ask(self, method: str, path: str, body: bytes = b"") -> Reply:
        """Send one request and read the whole answer; raises `OSError` or `EOFError` on a broken connection."""
        head = f"{method} {path} HTTP/1.1\r\n{self._fields}"
        if body:
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        try:
            reader, writer = await self.streams()
            writer.write(head.encode() + b"\r\n" + body)
            reply = await read_reply(reader)
        except BaseException:
            self.close()  # the rest of this answer must not be read as the next one
            raise
        if reply.headers.get("connection", "").lower() == "close":
            self.close()
        return reply

    async def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the reader and the writer of the open connection."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=_MOST_HEAD)
        return self._streams

    def close(self) -> None:
        """Close the connection immediately."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Read one HTTP/1.1 answer."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ", 2)[1])
    fields = (line.partition(":") for line in lines[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b"".join([chunk async for chunk in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Reply(status, headers, body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
