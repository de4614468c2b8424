"""Real servers, started as a user starts them, and a plain client for malformed requests."""

import contextlib
import http.client
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from benchmarks.started import started
from foveal.serving.computing._process import Computing
from tests.tasks.stored import BUNDLES

SECONDS = 90  # limit for a start, an answer or an end on a busy machine
STORED = BUNDLES / "0.1.0"
GOOD = STORED / "transduction"  # writes short words in uppercase
TOKEN = "a-token-of-the-tests-1"


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[str]:
        """The answers as the server wrote them, without the enclosing object."""
        texts, rest = [], self.body.decode().partition('"answers": [')[2]
        decoder = json.JSONDecoder()
        while rest[0] == "{":
            _, end = decoder.raw_decode(rest)
            texts.append(rest[:end])
            rest = rest[end:].removeprefix(", ")
        return texts


class Server(NamedTuple):
    """A running server."""

    process: "subprocess.Popen[str]"
    port: int
    log: Path

    def ask(
        self,
        path: str,
        data: Any = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request on a new connection."""
        content = json.dumps(data).encode() if data is not None else body
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            method = "GET" if content is None else "POST"
            kind = {} if content is None else {"Content-Type": "application/json"}
            # A server that rejects a request may answer and close before it has read all of it.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, content, kind | dict(headers or {}))
            answer = connection.getresponse()
            return Response(
                answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            )

    def predict(self, name: str, inputs: list[str], **more: Any) -> Response:
        return self.ask(f"/v1/models/{name}/predict", {"inputs": inputs, **more})

    def metric(self, line: str) -> float:
        """Return the value of a metric, 0 if it has not been counted yet."""
        text = self.ask("/metrics").body.decode()
        found = [row for row in text.splitlines() if row.startswith(line + " ")]
        return float(found[0].rpartition(" ")[2]) if found else 0.0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> int:
        """Send SIGTERM, and return the exit status of the server."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


@contextlib.contextmanager
def serving(folder: Path, *words: object) -> Iterator[Server]:
    """Run `foveal serve` with these arguments; kill the server unless the test has ended it."""
    log = folder / "log.txt"
    command = ["serve", *map(str, words), "--port", "0"]
    with log.open("w") as errors, started(command, errors, SECONDS) as (process, address):
        port = urlsplit(address).port
        assert port is not None
        yield Server(process, port, log)


@pytest.fixture(scope="module")
def computing() -> Iterator[Computing]:
    with Computing() as started:
        yield started


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start one server with a model of every kind, and end it by SIGTERM."""
    kinds = ("transduction", "classification", "tagging", "language_modeling")
    folders = [STORED / kind for kind in kinds]
    with serving(tmp_path_factory.mktemp("server"), *folders) as started:
        yield started
        assert started.end() == 0
