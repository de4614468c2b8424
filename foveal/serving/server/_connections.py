"""The connections of a server: limited in total and per address, and always with room for one more.

A connection costs nothing to open, so a client with many connections must not lock out others. At the limit,
the address with the most connections loses one: first a connection without any request, then one with a slow
body, then an idle one, then one whose body is still arriving. Connections with a request in progress stay open.
"""

import asyncio
import select
import ssl
from itertools import islice
from typing import Any, final

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from ._line import Line, is_whole, token_in

# Connections above the limit, while every other connection has a request in progress: they serve health
# checks, and send an error to other clients.
_SPARE = 64
HANDSHAKE_SECONDS = 5.0
_SLOW_SECONDS = 1.0  # a body that takes longer is slow
_UNUSED, _SLOW, _IDLE, _SENDING, _BUSY = range(5)
# Connections to examine before closing one. In a burst of a thousand new connections, examining all
# connections for each of them would block the event loop for seconds.
_MOST_LOOKS = 64


class Held(asyncio.Protocol):
    """A connection that can be counted and closed."""

    address: str = ""

    @property
    def rank(self) -> int:
        """Return the cost of closing the connection."""
        return _UNUSED

    def hang_up(self) -> None:
        """Close the connection at once."""
        raise NotImplementedError


@final
class Connections:
    """The open connections.

    Args:
        most: The total limit.
        most_of_address: The limit per address.
        proxies: Addresses without a limit.
    """

    def __init__(self, *, most: int, most_of_address: int, proxies: frozenset[str]) -> None:
        self._most, self._most_of_address, self._proxies = most, most_of_address, proxies
        self._open = dict[str, dict[Held, None]]()  # by address, the oldest first
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def add(self, new: Held) -> bool:
        """Count a connection, and close another one at the limit; returns False if there is no room."""
        own = self._open.setdefault(new.address, {})
        if len(own) >= self._most_of_address and new.address not in self._proxies:
            is_room = self._close_one(own)
        elif self._number >= self._most:
            is_room = self._close_one(max(self._open.values(), key=len))
        else:
            is_room = True
        if not is_room and self._number >= self._most + _SPARE:
            return False
        self._open.setdefault(new.address, {})[new] = None
        self._number += 1
        return True

    def remove(self, old: Held) -> None:
        """Stop counting a connection."""
        own = self._open.get(old.address, {})
        if old in own:
            del own[old]
            self._number -= 1
            if not own:
                del self._open[old.address]

    def _close_one(self, some: dict[Held, None]) -> bool:
        """Close the least valuable of the oldest connections. Connections in use move to the end, and the next search
        examines others.
        """
        chosen, least = None, _BUSY
        for one in list(islice(some, _MOST_LOOKS)):
            rank = one.rank
            if rank < least:
                chosen, least = one, rank
            if rank == _UNUSED:
                break
            if rank in (_IDLE, _BUSY):
                del some[one]
                some[one] = None
        if chosen is None:
            return False
        self.remove(chosen)
        chosen.hang_up()
        return True


class Punctual(H11Protocol, Held):
    """A counted connection with a time limit for the head of a request. Requests that arrive in pieces wait in line."""

    held_in: Connections
    line: Line
    seconds: float  # time limit for the head of a request
    _late: asyncio.TimerHandle | None = None
    _asked_at = 0.0
    _early = b""
    _in_line = b""  # the beginning of a request that waits for its turn

    @property
    @override
    def rank(self) -> int:
        if self._in_line:
            return _SLOW if self.loop.time() - self._asked_at > _SLOW_SECONDS else _SENDING
        if self.cycle is None:
            # A client that has just connected may have sent its request already.
            return _SENDING if self.transport is None or _has_come(self.transport) else _UNUSED
        if self.cycle.response_complete:
            return _IDLE
        if not self.cycle.more_body:
            return _BUSY
        return _SLOW if self.loop.time() - self._asked_at > _SLOW_SECONDS else _SENDING

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._wait()
        if not self.held_in.add(self):
            transport.abort()
        elif self._early:
            self.data_received(self._early)

    @override
    def data_received(self, data: bytes) -> None:
        if self.transport is None:  # TLS delivers data before the handshake is awaited
            self._early += data
            return
        is_new = self.cycle is None or self.cycle.response_complete
        if is_new and not is_whole(data):
            self._in_line, self._asked_at = data, self.loop.time()
            self.transport.pause_reading()
            self.line.join(self.address, token_in(data), self._begin)
        else:
            self._take(data)

    def _begin(self) -> bool:
        """Start this connection's turn; returns False if it has been closed."""
        data, self._in_line = self._in_line, b""
        if self.transport.is_closing():
            return False
        self.transport.resume_reading()
        self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._asked_at = self.loop.time()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._late is None:
            self._wait()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None:
            self.held_in.remove(self)
            self._stop_waiting()
            super().connection_lost(exc)

    @override
    def hang_up(self) -> None:
        self.transport.abort()

    def _wait(self) -> None:
        self._late = self.loop.call_later(self.seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def plain_protocol(connections: Connections, seconds: float) -> type[H11Protocol]:
    """Return the protocol of counted connections, which close if no head arrives in time."""
    own = {"held_in": connections, "line": Line(), "seconds": seconds}
    return type("Counted", (Punctual,), own)


def _has_come(transport: Any) -> bool:
    """Return whether there is data to read."""
    if transport.is_closing():
        return False
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


def secure_protocol(
    connections: Connections, plain: type[H11Protocol], context: ssl.SSLContext
) -> type[Held]:
    """Return the protocol of TLS connections, counted from the first byte, with a time limit for the handshake."""

    class Handshake(Held):
        def __init__(self, **parts: Any) -> None:
            self._parts, self._task = parts, None
            self._transport: Any = None

        @override
        def connection_made(self, transport: Any) -> None:
            self._transport = transport
            transport.pause_reading()  # until TLS reads
            peer = transport.get_extra_info("peername")
            self.address = peer[0] if peer else ""
            if connections.add(self):
                self._task = asyncio.create_task(self._start())
            else:
                transport.abort()

        async def _start(self) -> None:
            protocol = plain(**self._parts)
            loop = asyncio.get_running_loop()
            try:
                transport = await loop.start_tls(
                    self._transport,
                    protocol,
                    context,
                    server_side=True,
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                )
            except (OSError, ssl.SSLError):
                self._transport.abort()
                return
            finally:
                connections.remove(self)
            if transport is not None and not transport.is_closing():
                protocol.connection_made(transport)

        @override
        def hang_up(self) -> None:
            self._transport.abort()

    return Handshake
