"""A waiting line for requests that arrive in pieces; complete requests overtake them.

Reading the head of a request, reserving memory for its body and perhaps rejecting it takes the event loop about a
millisecond. A client that begins nine hundred bodies and finishes none would block it for a second. A request
that is not complete after one read therefore waits here, its connection unread, and the line moves one by one:
every client's first request before any client's second (fair queueing, Nagle 1987).
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import final

# A long line leaves the event loop time for everything else. A short line moves as fast as possible: many honest
# clients send head and body separately and must not be slowed down.
_SHORT, _SECONDS_BETWEEN = 16, 0.004
_MOST_OF_HEAD = 16 << 10
_END_OF_HEAD = b"\r\n\r\n"
_END_OF_CHUNKS = b"0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,20})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_TOKEN = re.compile(rb"\r\nauthorization:([^\r\n]*)", re.IGNORECASE)


def is_whole(data: bytes) -> bool:
    """Return whether these bytes are a request with its complete body, according to its head."""
    end = data.find(_END_OF_HEAD, 0, _MOST_OF_HEAD)
    if end < 0:
        return False
    head = data[: end + 2]
    if _CHUNKED.search(head):
        return data.endswith(_END_OF_CHUNKS)
    length = _LENGTH.search(head)
    return length is None or len(data) - end - len(_END_OF_HEAD) >= int(length[1])


def token_in(data: bytes) -> bytes:
    """Return the token in the beginning of a request, valid or not; empty if there is none."""
    found = _TOKEN.search(data, 0, _MOST_OF_HEAD)
    return found[1].strip() if found else b""


@final
class Line:
    """The waiting requests of each client, in order of arrival."""

    def __init__(self) -> None:
        self._waiting = dict[tuple[str, bytes], deque[Callable[[], bool]]]()
        self._length, self._is_moving = 0, False

    def join(self, address: str, token: bytes, begin: Callable[[], bool]) -> None:
        """Call `begin` when it is the request's turn; `begin` returns False if the client has disconnected."""
        self._waiting.setdefault((address, token), deque()).append(begin)
        self._length += 1
        if not self._is_moving:
            self._is_moving = True
            self._move()

    def _move(self) -> None:
        while self._waiting:
            client = next(iter(self._waiting))
            own = self._waiting.pop(client)
            begin = own.popleft()
            if own:
                self._waiting[client] = own  # behind all other clients
            self._length -= 1
            if begin():
                seconds = 0.0 if self._length < _SHORT else _SECONDS_BETWEEN
                asyncio.get_running_loop().call_later(seconds, self._move)
                return
        self._is_moving = False
