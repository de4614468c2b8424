"""Requests that arrive in pieces wait in line: fair between clients, and overtaken by whole
requests.
"""

import asyncio
import socket
import time
from http.client import HTTPResponse
from pathlib import Path

import pytest

from foveal.serving.server._line import Line, is_whole, token_in
from tests.serving.conftest import GOOD, SECONDS, serving

PREDICT = "/v1/models/transduction/predict"
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (HEAD + b"Content-Length: 3\r\n\r\nab", False),
        (HEAD + b"content-length:3\r\n\r\nabc", True),
        (HEAD + b"X: Content-Length: 9\r\nContent-Length: 3\r\n\r\nabc", True),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", False),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", True),
        (HEAD + b"X: " + b"a" * (16 << 10) + b"\r\n\r\n", False),
    ],
)
def test_which_requests_are_whole(data: bytes, expected: bool) -> None:
    assert is_whole(data) is expected


def test_the_token_of_a_request() -> None:
    assert token_in(HEAD + b"AUTHORIZATION:  Bearer abc \r\n\r\n") == b"Bearer abc"
    # Harmless: the token only decides the order in the line.
    assert token_in(HEAD + b"\r\nAuthorization: in the body") == b"in the body"
    assert token_in(HEAD) == b""


def test_the_second_client_is_served_second() -> None:
    order = list[str]()

    async def run() -> None:
        line = Line()

        def join(token: str, number: int, *, is_there: bool = True) -> None:
            def begin() -> bool:
                order.append(f"{token}{number}")
                return is_there

            line.join("127.0.0.1", token.encode(), begin)

        for number in range(40):
            join("a", number, is_there=number != 1)
        join("b", 0)
        while len(order) < 41:
            await asyncio.sleep(0.01)
        join("c", 0)  # the line begins to move again
        assert order[-1] == "c0"

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    # The first request of "a" began before "b" arrived.
    assert order[:4] == ["a0", "a1", "b0", "a2"]
    assert order[4:-1] == [f"a{number}" for number in range(3, 40)]


def status(connection: socket.socket) -> int:
    """Read the next response to its end, and return its status."""
    response = HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status


def test_a_request_in_pieces_is_answered_and_whole_ones_pass_a_long_line(tmp_path: Path) -> None:
    body = b'{"inputs": ["abc"]}'
    lines = [f"POST {PREDICT} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", "", ""]
    head = "\r\n".join(lines)
    with serving(tmp_path, GOOD) as server:
        where = ("127.0.0.1", server.port)
        with socket.create_connection(where, timeout=SECONDS) as connection:
            for sent in (head[:30].encode(), head[30:].encode(), body[:5], body[5:]):
                connection.sendall(sent)
                time.sleep(0.05)
            assert status(connection) == 200
            # The same connection is reused for a whole request and for another one in pieces.
            connection.sendall(head.encode() + body)
            assert status(connection) == 200
            connection.sendall(head.encode())
            connection.sendall(body)
            assert status(connection) == 200
        unfinished = [socket.create_connection(where, timeout=SECONDS) for _ in range(300)]
        try:
            for connection in unfinished:
                connection.sendall(head.encode())
            assert server.ask("/healthz").status == 200
        finally:
            for connection in unfinished:
                connection.close()
        assert server.ask(PREDICT, body=body).status == 200
