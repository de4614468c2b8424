"""`foveal explore` from the command line, and its error messages if it cannot start."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
from asyncio.base_events import _set_nodelay  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from foveal.cli._main import main
from foveal.web._sockets import listen
from tests.explorer.conftest import GOOD, SECONDS, Served

pytestmark = pytest.mark.slow


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["explore", *map(str, words), "--no-browser"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_it_listens_on_the_loopback_alone_and_logs_no_text(served: Served) -> None:
    address = urlsplit(served.address)
    assert address.hostname == "127.0.0.1"
    assert address.port is not None
    other = socket.gethostbyname(socket.gethostname())
    if other != "127.0.0.1":
        with socket.socket() as elsewhere:
            assert elsewhere.connect_ex((other, address.port)) != 0
    token = address.query.removeprefix("token=")
    assert len(token) > 20
    long, prefix = "secretword" * 300, ["A"] * 1000
    for shown, more, status in (
        (token, {"input": "secretword"}, 200),
        (token, {"input": long}, 400),
        (token, {"input": "ab", "prefix": prefix}, 400),
        ("", {"input": "secretword"}, 401),
        (f"{token}x", {"input": "secretword"}, 401),
    ):
        body = json.dumps({"run": "transduction", **more})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {shown}"}
        assert _status(address.port, "POST", "/api/explain", body, headers) == status
    assert _status(address.port, "GET", "/api/runs") == 401
    assert _status(address.port, "GET", "/") == 401
    assert "secretword" not in served.log.read_text()
    assert token not in served.log.read_text()


def _status(port: int, method: str, path: str, *parts: Any) -> int:
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    ) as connection:
        connection.request(method, path, *parts)
        return connection.getresponse().status


def test_a_run_that_is_not_there_or_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert "runs/none" in refused(capsys, "runs/none")
    assert "one or two models" in refused(capsys, GOOD, GOOD, GOOD)


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert str(port) in refused(capsys, GOOD, "--port", port)
    assert "99999" in refused(capsys, GOOD, "--port", 99999)


def test_a_missing_package_is_said_with_its_remedy(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from foveal.cli import main; main(['explore', 'runs/x'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install '.[serve]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_answers_are_sent_at_once() -> None:
    with listen("explore", "127.0.0.1", 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"
        with socket.create_connection(bound.getsockname(), timeout=SECONDS):
            accepted, _ = bound.accept()
            with accepted:
                _set_nodelay(accepted)  # as asyncio does if it recognizes a connection as TCP
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
