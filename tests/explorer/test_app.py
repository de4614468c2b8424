"""The application without a browser: accepted and refused requests, and their answers."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI

from foveal.data import Example
from foveal.explorer import build_app
from foveal.explorer._guard import MOST_BYTES, Guard
from foveal.inspection import explain
from foveal.web._runs import ServedRun, load_runs
from tests.explorer.conftest import GOOD
from tests.tasks.stored import BUNDLES

HERE = "127.0.0.1:8000"
JSON = "application/json"


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@pytest.fixture(scope="module")
def run() -> ServedRun:
    (loaded,) = load_runs([GOOD])
    return loaded


@pytest.fixture
def app(run: ServedRun) -> Iterator[FastAPI]:
    built = build_app([run])
    yield built

    async def end() -> None:
        async with built.router.lifespan_context(built):
            pass

    asyncio.run(end())


async def request(
    app: FastAPI,
    path: str,
    *,
    body: bytes | list[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
    gone: bool = False,
) -> Response:
    """Send one request as a server does; with `gone`, the client disconnects after the request."""
    parts = [body or b""] if not isinstance(body, list) else body
    pending = [
        {"type": "http.request", "body": part, "more_body": n + 1 < len(parts)}
        for n, part in enumerate(parts)
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        if pending:
            return pending.pop(0)
        if not gone:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    named = {"host": HERE} | ({} if body is None else {"content-type": JSON}) | dict(headers or {})
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET" if body is None else "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50000),
    }
    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Response(sent[0]["status"], found, b"".join(one.get("body", b"") for one in sent[1:]))


def fetch(app: FastAPI, path: str, **options: Any) -> Response:
    return asyncio.run(request(app, path, **options))


def question(**changes: Any) -> bytes:
    return json.dumps({"run": "transduction", "input": "abc"} | changes).encode()


def test_the_answer_is_the_explanation_as_data(app: FastAPI, run: ServedRun) -> None:
    found = fetch(app, "/api/explain", body=question())
    assert found.status == 200
    assert found.data == explain(run.task, Example("abc")).to_data()
    forced = fetch(app, "/api/explain", body=question(prefix=["A"], forced={"1": [0, 0, 1]}))
    assert (
        forced.data
        == explain(run.task, Example("abc"), prefix=["A"], forced={1: [0.0, 0.0, 1.0]}).to_data()
    )
    assert forced.data["steps"][1]["forced"]
    assert forced.data["output"] != found.data["output"]


def test_the_page_and_its_files_are_served_with_a_strict_policy(app: FastAPI) -> None:
    page = fetch(app, "/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text = page.body.decode()
    assert "<script>" not in text
    assert "style=" not in text
    assert "http" not in text.replace("http-equiv", "")
    for name in ("main.js", "theme.css", "explorer.css"):
        asset = fetch(app, f"/assets/{name}")
        assert asset.status == 200
        assert asset.headers["x-content-type-options"] == "nosniff"
        assert b"//" not in asset.body or name.endswith(".js")
    assert fetch(app, "/assets/../_app.py").status == 404
    assert fetch(app, "/assets/_app.py").status == 404
    assert fetch(app, "/docs").status == 404
    assert fetch(app, "/openapi.json").status == 404


def test_runs_say_what_the_page_must_know(app: FastAPI, run: ServedRun) -> None:
    (described,) = fetch(app, "/api/runs").data
    assert described["name"] == "transduction"
    assert described["forcible"] is True
    assert described["features"] is False
    target = run.task.vocabularies.target
    assert target is not None
    assert described["symbols"] == sorted(target.tokens)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body"),
        (b"{", "the body"),
        (b"[]", "the body"),
        (b'"text"', "the body"),
        (b"\xff\xfe", "the body"),
        (b'{"run": "transduction"}', "input"),
        (question(input=3), "input"),
        (question(input="a" * 2001), "input"),
        (question(input="\ud800"), "the body"),
        (question(more=1), "more"),
        (question(prefix="AB"), "prefix"),
        (question(prefix=["?"]), "'?'"),
        (question(prefix=[""]), "prefix"),
        (question(forced=[1]), "forced"),
        (question(forced={"x": [1, 0, 0]}), "forced"),
        (question(forced={"-1": [1, 0, 0]}), "forced"),
        (question(forced={"0": [1, 0]}), "3 positions"),
        (question(forced={"0": [0, 0, 0]}), "above 0"),
        (question(forced={"0": [-1, 0, 0]}), "forced"),
        (b'{"run": "transduction", "input": "abc", "forced": {"0": [NaN, 0, 0]}}', "forced"),
        (b'{"run": "transduction", "input": "abc", "forced": {"0": [1e999, 0, 0]}}', "forced"),
    ],
)
def test_a_body_that_is_no_question_is_refused_in_one_line(
    app: FastAPI, body: bytes, said: str
) -> None:
    found = fetch(app, "/api/explain", body=body)
    assert found.status == 400
    assert set(found.data) == {"error"}
    assert said in found.data["error"]
    assert "\n" not in found.data["error"]


def test_other_refusals_are_lines_too(app: FastAPI) -> None:
    for found, status in (
        (fetch(app, "/api/explain", body=question(run="nobody")), 404),
        (fetch(app, "/api/explain", body=question(), headers={"content-type": "text/plain"}), 415),
        (fetch(app, "/api/explain"), 405),
        (fetch(app, "/nothing"), 404),
    ):
        assert found.status == status
        assert list(found.data) == ["error"]
        assert "content-security-policy" in found.headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil",
        "",
        "[::1",
        "*",
    ],
)
def test_another_name_for_this_machine_is_refused(app: FastAPI, host: str) -> None:
    found = fetch(app, "/api/explain", body=question(), headers={"host": host})
    assert found.status == 403
    assert "127.0.0.1" in found.data["error"]
    assert fetch(app, "/", headers={"host": host}).status == 403


def test_this_machine_is_answered_on_any_port(app: FastAPI) -> None:
    for host in ("127.0.0.1", "localhost:9999", HERE):
        assert fetch(app, "/", headers={"host": host}).status == 200


def test_a_page_from_elsewhere_is_refused(app: FastAPI) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9", "http://localhost:8000"):
        found = fetch(app, "/api/explain", body=question(), headers={"origin": origin})
        assert found.status == 403
    own = fetch(app, "/api/explain", body=question(), headers={"origin": f"http://{HERE}"})
    assert own.status == 200
    assert "access-control-allow-origin" not in own.headers


def test_a_body_that_is_too_long_is_refused_said_or_not(app: FastAPI) -> None:
    said = {"content-length": str(MOST_BYTES + 1)}
    assert fetch(app, "/api/explain", body=b"{}", headers=said).status == 413
    unsaid = fetch(app, "/api/explain", body=[b"x" * 1000] * (MOST_BYTES // 1000 + 1))
    assert unsaid.status == 413
    assert "longer than" in unsaid.data["error"]


def test_a_model_at_work_keeps_nobody_waiting(app: FastAPI) -> None:
    async def both() -> list[str]:
        ended: list[str] = []

        async def one(name: str, asked: Coroutine[Any, Any, Response]) -> None:
            assert (await asked).status == 200
            ended.append(name)

        slow = request(app, "/api/explain", body=question(input="abcde" * 40))
        await asyncio.gather(one("answer", slow), one("page", request(app, "/")))
        return ended

    assert asyncio.run(both()) == ["page", "answer"]


def test_who_has_gone_is_not_answered(app: FastAPI) -> None:
    assert fetch(app, "/api/explain", body=question(), gone=True).status == 499


def test_a_fault_is_a_line_and_the_log_has_no_text(caplog: pytest.LogCaptureFixture) -> None:
    (broken,) = load_runs([GOOD])
    broken.task.model = None  # no user file can cause this
    app = build_app([broken])
    with caplog.at_level(logging.DEBUG):
        found = fetch(app, "/api/explain", body=question(input="secret"))
    assert found.status == 500
    assert "Please report it" in found.data["error"]
    assert "an answer failed" in caplog.text
    assert "secret" not in caplog.text + found.data["error"]


@pytest.mark.parametrize("kind", ["classification", "tagging", "language_modeling"])
def test_other_tasks_are_explained_too(kind: str) -> None:
    app = build_app(load_runs([BUNDLES / "0.1.0" / kind]))
    assert fetch(app, "/api/runs").data[0]["forcible"] is False
    found = fetch(app, "/api/explain", body=question(run=kind, input="the good old ship"))
    assert found.status == 200
    assert found.data["task"] == kind
    refused = fetch(app, "/api/explain", body=question(run=kind, input="a", prefix=["a"]))
    assert refused.status == 400
    assert "tokens one by one" in refused.data["error"]


def test_a_body_that_never_comes_is_cut() -> None:
    """The client has sent the headers of a request and half of its body."""
    sent = list[Any]()
    pending = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        if not pending:
            await asyncio.Event().wait()
        return pending.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    async def never(*_: object) -> None:
        raise AssertionError

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/explain",
        "query_string": b"",
        "headers": [(b"host", HERE.encode()), (b"content-length", b"9")],
    }
    asyncio.run(Guard(never, body_seconds=0.05)(scope, receive, send))
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]


def test_the_token_of_the_address_becomes_a_cookie(run: ServedRun) -> None:
    app = build_app([run], token="a-token-of-the-tests")
    assert fetch(app, "/api/runs").status == 401
    assert fetch(app, "/api/runs", headers={"cookie": "token-8000=another"}).status == 401
    assert (
        fetch(app, "/api/runs", headers={"cookie": "token-8000=a-token-of-the-tests"}).status == 200
    )
    assert fetch(app, "/assets/main.js").status == 200
