"""The clients with real servers: ours, and one that refuses on purpose."""

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from foveal.bundles import load_bundle
from foveal.data import Example
from foveal.errors import ValueRangeError
from foveal.serving.client import AsyncClient, Client, Retries, ServerError
from foveal.tasks import PredictionSpec
from tests.serving.conftest import GOOD, TOKEN, Server, serving

pytestmark = pytest.mark.slow

ANSWER = b'{"model": "m", "version": "v", "answers": [{"source": "a", "output": "A"}]}'


@contextmanager
def refusing(
    times: int,
    status: int = 503,
    after: str | None = "1",
    said: bytes = b'{"error": "too much"}',
) -> Iterator[tuple[str, list[float]]]:
    """Run a server that refuses a number of requests before it answers; yield its address and
    request times.
    """
    asked: list[float] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            asked.append(time.monotonic())
            is_good = len(asked) > times
            body = ANSWER if is_good else said
            self.send_response(200 if is_good else status)
            if after is not None and not is_good:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name in the base class
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_answers_are_the_models(server: Server) -> None:
    task = load_bundle(GOOD)
    (expected,) = task.predict([Example("abc")], PredictionSpec(nbest=2, trace=True))
    with Client(server.address) as client:
        (answer,) = client.predict("transduction", ["abc"], nbest=2, attention=True, deadline=60.0)
        names = [model.name for model in client.models()]
    assert answer.output == expected.output
    assert answer.confidence == expected.confidence
    assert answer.nbest == expected.nbest
    assert answer.attention == expected.trace
    assert "tagging" in names


def test_one_text_in_place_of_a_list_is_an_error() -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(ValueRangeError) as refused:
        client.predict("ice", "reykjavík")
    assert str(refused.value) == (
        "predict: inputs must be a list of texts, got one text, 'reykjavík'. "
        "Put it into a list: ['reykjavík']."
    )


def test_many_at_once(server: Server) -> None:
    async def ask() -> list[str]:
        async with AsyncClient(server.address) as client:
            words = [letter * size for letter in "abc" for size in (1, 2, 3, 4)]
            found = await asyncio.gather(
                *(client.predict("transduction", [word]) for word in words)
            )
            assert len(await client.models()) == 4
        return [answer.source for (answer,) in found]

    assert asyncio.run(ask()) == [letter * size for letter in "abc" for size in (1, 2, 3, 4)]


def test_refusals_are_errors_with_the_servers_words(server: Server) -> None:
    with Client(server.address) as client:
        with pytest.raises(ServerError, match="Unknown model") as refused:
            client.predict("nothing", ["a"])
        assert refused.value.status == 404
        with pytest.raises(ServerError, match="nbest"):
            client.predict("transduction", ["a"], nbest=1000)


def test_a_busy_server_is_asked_again_after_as_long_as_it_says() -> None:
    with refusing(times=2) as (address, asked), Client(address) as client:
        assert client.predict("m", ["a"])[0].output == "A"
    assert len(asked) == 3
    assert all(later - earlier >= 1 for earlier, later in pairwise(asked))


def test_the_async_client_asks_again_too() -> None:
    async def ask(address: str) -> str:
        async with AsyncClient(address) as client:
            return (await client.predict("m", ["a"]))[0].output

    with refusing(times=1, after=None) as (address, asked):
        assert asyncio.run(ask(address)) == "A"
    assert len(asked) == 2


@pytest.mark.parametrize("status", [500, 502, 504])
def test_an_answer_lost_behind_a_proxy_is_asked_for_again(status: int) -> None:
    said = b"Internal Server Error"  # from the proxy: our server would send JSON
    with (
        refusing(times=2, status=status, after=None, said=said) as (address, asked),
        Client(address) as client,
    ):
        assert client.predict("m", ["a"])[0].output == "A"
    assert len(asked) == 3


def test_it_gives_up_when_it_should() -> None:
    with refusing(times=9, after="60") as (address, asked):
        with (
            Client(address, retries=Retries(seconds=5.0)) as client,
            pytest.raises(ServerError) as end,
        ):
            client.predict("m", ["a"])
        assert end.value.status == 503
        assert len(asked) == 1
    with refusing(times=9, status=500) as (address, asked):
        with Client(address) as client, pytest.raises(ServerError, match="too much"):
            client.predict("m", ["a"])
        assert len(asked) == 1


def test_a_server_that_is_not_there() -> None:
    retries = Retries(attempts=2)
    with (
        Client("http://127.0.0.1:9", retries=retries) as client,
        pytest.raises(ServerError) as none,
    ):
        client.predict("m", ["a"])
    assert none.value.status is None
    assert "2 attempts" in str(none.value)


def test_tokens_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(TOKEN)
    with serving(tmp_path, GOOD, "--tokens", file) as server:
        with Client(server.address) as stranger, pytest.raises(ServerError, match="token"):
            stranger.predict("transduction", ["a"])
        with Client(server.address, token=TOKEN) as client:
            assert client.predict("transduction", ["abc"])[0].output == "ABC"


@contextmanager
def saying(body: bytes, *fields: bytes) -> Iterator[tuple[str, list[float]]]:
    """Run a server that answers every request with these bytes; yield its address and request
    times.
    """
    asked = list[float]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(time.monotonic())
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body))
            self.wfile.write(b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name in the base class
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"null",
        b"[" * 100_000,
        b'{"answers": [{}], "models": [{}]}',
        b'{"answers": 1, "models": 1}',
        b'{"answers": [{"source": "a", "output": "b", "attention": 1}], "models": [1]}',
        b"\xff",
    ],
    ids=lambda body: str(body)[:20],
)
def test_what_is_no_answer_ends_in_the_error_of_the_client(body: bytes) -> None:
    async def ask(address: str) -> None:
        async with AsyncClient(address) as client:
            await client.models()

    with saying(body) as (address, asked):
        with Client(address) as client:
            with pytest.raises(ServerError, match="not from a Foveal server"):
                client.models()
            with pytest.raises(ServerError, match="not from a Foveal server"):
                client.predict("m", ["a"])
        with pytest.raises(ServerError, match="not from a Foveal server"):
            asyncio.run(ask(address))
    assert len(asked) == 3


def test_fields_of_a_newer_server_are_left_out() -> None:
    body = b'{"models": [{"name": "m", "version": "v", "task": "t", "features": false, "exact": true, "x": 1}]}'
    with saying(body) as (address, _), Client(address) as client:
        assert [model.name for model in client.models()] == ["m"]


def test_a_compressed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    with saying(bomb, b"Content-Encoding: gzip") as (address, asked), Client(address) as client:
        with pytest.raises(ServerError, match="compressed"):
            client.models()
        assert len(asked) == 1


@pytest.mark.parametrize("token", ["abc\r\nX-Evil: 1", "a-token\n", "t\u00f6ken", ""])
def test_a_token_that_is_none_is_told_at_once(token: str) -> None:
    with pytest.raises(ValueRangeError, match="printable ASCII"):
        Client("http://127.0.0.1:9", token=token)
