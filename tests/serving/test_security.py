"""Requests that the server refuses, and information that it never reveals."""

import contextlib
import json
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.serving.conftest import GOOD, SECONDS, TOKEN, Server, serving

pytestmark = pytest.mark.slow

PREDICT = "/v1/models/transduction/predict"
SECRET = "secretword"


def raw(server: Server, sent: bytes) -> bytes:
    """Send bytes, which the server need not read to the end, and return the response until it
    closes.
    """
    found = b""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection,
        contextlib.suppress(ConnectionResetError, BrokenPipeError),
    ):
        connection.sendall(sent)
        while part := connection.recv(1 << 16):
            found += part
    return found


@pytest.mark.parametrize(
    "name",
    ["..", "../transduction", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f", "transduction%00", "a" * 3000],
)
def test_names_are_looked_up_and_never_opened(server: Server, name: str) -> None:
    response = server.ask(f"/v1/models/{name}/predict", {"inputs": ["a"]})
    assert response.status == 404
    assert "passwd" not in response.body.decode()


@pytest.mark.parametrize("path", ["/assets/..%2f_app.py", "/assets/../_app.py", "/assets/nothing"])
def test_files_are_those_of_the_page(server: Server, path: str) -> None:
    assert server.ask(path).status == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 422),
        (b"[" * 100_000, 422),
        (b'{"inputs":' * 50_000, 422),
        (b'{"inputs": ["a"], "nbest": ' + b"9" * 100_000 + b"}", 422),
        (b'{"inputs": ["a"], "nbest": 1e999}', 422),
        (b'{"inputs": ["\\ud800"]}', 422),
        (b'{"inputs": ["\xff"]}', 422),
        (b'{"inputs": "a"}', 422),
        (b'{"inputs": [1]}', 422),
        (b'{"inputs": []}', 422),
        (b'{"inputs": ["a"], "nbest": 0}', 422),
        (b'{"inputs": ["a"], "nbest": 17}', 422),
        (b'{"inputs": ["a"], "unknown": 1}', 422),
        (b'{"inputs": ["a"], "features": ["b"]}', 422),
        (b'{"inputs": ["a"], "features": ["b", "c"]}', 422),
        (b'{"inputs": ["' + b"a" * 2001 + b'"]}', 422),
        (b'{"inputs": ["' + b"a" * 800 + b'"], "attention": true, "deadline_ms": 0}', 422),
        (json.dumps({"inputs": ["a"] * 257}).encode(), 422),
        (b'{"inputs": ["' + b"a" * (1 << 20) + b'"]}', 413),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bombs_and_nonsense_are_refused(server: Server, body: bytes, status: int) -> None:
    response = server.ask(PREDICT, body=body)
    assert response.status == status
    assert response.data["error"].count("\n") == 0
    assert server.ask("/healthz").status == 200


def test_heads_are_bounded(server: Server) -> None:
    for head in (b"X: " + b"a" * 100_000, b"".join(b"X-%d: a\r\n" % n for n in range(20_000))):
        found = raw(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + head)
        assert not found or found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert server.ask("/healthz").status == 200


def test_packed_bodies_and_other_types_are_refused(server: Server) -> None:
    body = b'{"inputs": ["a"]}'
    for headers in ({"Content-Encoding": "gzip"}, {"Content-Type": "text/xml"}):
        assert server.ask(PREDICT, body=body, headers=headers).status == 415


def test_pages_from_elsewhere_and_other_names_are_refused(server: Server) -> None:
    body = b'{"inputs": ["a"]}'
    assert server.ask(PREDICT, body=body, headers={"Origin": "https://evil.example"}).status == 403
    assert server.ask(PREDICT, body=body, headers={"Host": "evil.example"}).status == 403
    own = {"Origin": server.address, "Host": f"127.0.0.1:{server.port}"}
    assert server.ask(PREDICT, body=body, headers=own).status == 200


def test_answers_may_not_be_kept_or_framed(server: Server) -> None:
    headers = server.ask("/").headers
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_no_text_is_logged(server: Server) -> None:
    server.predict("transduction", [SECRET])
    server.predict("transduction", [SECRET * 500])
    server.ask(f"/v1/models/{SECRET}/predict", {"inputs": [SECRET]})
    server.ask(PREDICT, body=b'{"inputs": ["' + SECRET.encode())
    raw(server, SECRET.encode() + b" / HTTP/1.1\r\n\r\n")
    assert SECRET not in server.log.read_text()
    assert SECRET not in server.ask("/metrics").body.decode()


def test_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n{TOKEN}\n\nanother-token-of-the-tests\n")
    with serving(tmp_path, GOOD, "--tokens", file) as server:
        body = b'{"inputs": ["abc"]}'
        for shown in ("", "Bearer", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}"):
            for path in (PREDICT, "/api/explain"):
                response = server.ask(path, body=body, headers={"Authorization": shown})
                assert response.status == 401
                assert response.headers["www-authenticate"] == "Bearer"
        for path in ("/v1/models", "/metrics", "/api/runs", "/openapi.json"):
            assert server.ask(path).status == 401
        for path in ("/", "/healthz", "/readyz", "/assets/trying.js"):
            assert server.ask(path).status == 200
        for token in (TOKEN, "another-token-of-the-tests"):
            headers = {"Authorization": f"Bearer {token}"}
            assert server.ask(PREDICT, body=body, headers=headers).status == 200
        assert TOKEN not in server.log.read_text()


def test_slow_senders_are_let_go(tmp_path: Path) -> None:
    """The server closes connections whose headers or body never end."""
    with serving(tmp_path, GOOD, "--limits.body-seconds", "1") as server:
        began = time.monotonic()
        assert raw(server, b"GET /healthz HTTP/1.1\r\nX: ") == b""
        body = (
            b"POST "
            + PREDICT.encode()
            + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
        )
        assert raw(server, body).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - began < SECONDS
        assert server.ask("/healthz").status == 200


def test_tls_by_flag(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    name = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command.split(), *name, "-keyout", str(key), "-out", str(certificate)],
        timeout=SECONDS,
        capture_output=True,
        check=True,
    )
    context = ssl.create_default_context(cafile=str(certificate))
    with (
        serving(tmp_path, GOOD, "--certificate", certificate, "--key", key) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert secure.recv(1 << 16).startswith(b"HTTP/1.1 200")
