"""The server application.

    POST /v1/models/{name}/predict    {inputs, features?, nbest?, attention?, ...} -> answers
    GET  /v1/models                   the served models
    GET  /healthz, /readyz            liveness; readiness
    GET  /metrics                     for Prometheus
    GET  /openapi.json                the OpenAPI document, with examples
    GET  /                            a page for people

Another process computes the answers; the event loop only reads and writes.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from ... import __version__
from ...errors import FovealError
from ...web._http import error_response
from ...web._question import QuestionError, check_length, read_question
from ...web._runs import ServedRun
from .._admission import ClosedError, LateError, OverloadedError, TooLargeError
from .._limits import Limits
from ..computing._orders import failed
from ..computing._process import Computing, FaultError
from ..computing._served import Served
from ._direct import PREDICT, Direct
from ._guard import LOOPBACK, Guard
from ._metrics import MEDIA_TYPE
from ._models import run_data
from ._openapi import LISTED, PREDICTED, STATE
from ._page import PAGE, page_assets
from ._schema import PredictRequest, RequestError, read_request
from ._serving import Serving
from ._tokens import Tokens

_GONE = 499  # the status that servers log for a client that disconnected
_log = logging.getLogger(__name__)


def build_app(
    served: Sequence[Served],
    computing: Computing,
    *,
    limits: Limits | None = None,
    tokens: Tokens | None = None,
    is_public: bool = False,
    token_file: Path | None = None,
    pages: bool = True,
) -> FastAPI:
    """Return the application for some models.

    Args:
        served: The models, which `computing` has loaded.
        computing: The computing process.
        limits: The limits of requests, queues and connections.
        tokens: The accepted bearer tokens, if any.
        is_public: Accept requests for any host name, not only for loopback names.
        token_file: The file of the tokens; when it changes, they are read again.
        pages: Serve the page for people, and its `/api`.

    Returns:
        The application, the argument of `serve`.
    """
    serving = Serving(
        served, computing, limits or Limits(), tokens or Tokens(), token_file=token_file
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        async with serving.running():
            yield

    app = FastAPI(
        title="Foveal",
        version=__version__,
        description="Models with calibrated confidence and attention.",
        lifespan=lifespan,
        # FastAPI's documentation pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # No input leaves the process, for any environment variables.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    app.state.serving = serving

    async def predict(name: str, request: Request) -> Response:
        return await _predicted(serving, name, request)

    # The middleware that is added last runs first.
    app.add_middleware(Direct, predict=predict)
    app.add_middleware(
        Guard,
        limits=serving.limits,
        tokens=serving.tokens,
        hosts=frozenset() if is_public else LOOPBACK,
        metrics=serving.metrics,
    )

    @app.exception_handler(HTTPException)
    async def refuse(request: Request, error: HTTPException) -> Response:
        del request
        response = error_response(error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response

    app.post(PREDICT, **PREDICTED)(predict)
    _add_routes(app, serving)
    if pages:
        _add_pages(app, serving)
    return app


def _add_routes(app: FastAPI, serving: Serving) -> None:
    @app.get("/v1/models", **LISTED)
    async def models() -> Response:
        return _json(serving.at_work()[0].to_data())

    @app.get("/healthz", **STATE)
    async def live() -> Response:
        return _json({"state": "alive"})

    @app.get("/readyz", **STATE)
    async def ready() -> Response:
        if serving.is_draining:
            return error_response(503, "The server is shutting down and accepts no more requests.")
        if serving.is_replacing:
            return error_response(
                503, "The computing process did not respond; a new one is starting."
            )
        return _json({"state": "ready"})

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(serving.metrics.text(), headers={"content-type": MEDIA_TYPE})


def _add_pages(app: FastAPI, serving: Serving) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _asset(PAGE)

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        return _asset(name)

    @app.get("/api/runs", include_in_schema=False)
    async def runs() -> Response:
        return _json([run_data(one) for one in serving.at_work()[0].by_name.values()])

    @app.post("/api/explain", include_in_schema=False)
    async def explained(request: Request) -> Response:
        return await _explained(serving, request)


async def _predicted(serving: Serving, name: str, request: Request) -> Response:
    began = time.monotonic()
    served = serving.at_work()[0].by_name.get(name)
    response = _no_such_model(serving) if served is None else await _asked(serving, served, request)
    label = (
        "unknown" if served is None else served.name
    )  # an unknown name would create a new series
    seconds = serving.metrics.request_seconds.labels(label, response.status_code)
    seconds.observe(time.monotonic() - began)
    return response


async def _asked(serving: Serving, served: Served, request: Request) -> Response:
    try:
        asked = read_request(await request.body(), serving.limits)
        _check_features(served, asked)
    except RequestError as error:
        serving.metrics.rejected.labels("request").inc()
        return error_response(422, str(error))
    answers = serving.at_work()[1].predict(served, asked, request.state.client)
    if asked.stream:
        return await _streamed(serving, answers)
    return await _unless_gone(serving, request, _whole(serving, served, answers))


def _no_such_model(serving: Serving) -> Response:
    names = ", ".join(serving.at_work()[0].by_name)
    return error_response(404, f"Unknown model. Models: {names}.")


def _check_features(served: Served, asked: PredictRequest) -> None:
    if asked.features is not None and not served.questions.has_features:
        raise RequestError("features: the model reads no features. Remove them.")


async def _whole(serving: Serving, served: Served, answers: AsyncGenerator[str, None]) -> Response:
    """Return all answers in one object."""
    try:
        texts = ", ".join([answer async for answer in answers])
    except Exception as error:
        return _refusal(serving, error)
    head = json.dumps({"model": served.name, "version": served.version})[:-1]
    body = f'{head}, "answers": [{texts}]}}\n'
    return Response(body.encode(), media_type="application/json")


async def _streamed(serving: Serving, answers: AsyncGenerator[str, None]) -> Response:
    """Stream answers as lines; the first must be ready before the status is sent."""
    try:
        first = await anext(answers)
    except Exception as error:
        return _refusal(serving, error)

    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(answers):
            yield f"{first}\n".encode()
            try:
                async for answer in answers:
                    yield f"{answer}\n".encode()
            except Exception as error:
                yield bytes(_refusal(serving, error).body) + b"\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def _unless_gone(
    serving: Serving, request: Request, answering: Awaitable[Response]
) -> Response:
    """Return the answer, unless the client disconnects first: then its computation is cancelled."""
    gone = asyncio.create_task(_left(request))
    try:
        async with asyncio.timeout(None) as patience:
            gone.add_done_callback(lambda _: _end_now(patience))
            return await answering
    except TimeoutError:
        serving.metrics.abandoned.inc()
        return Response(status_code=_GONE)
    finally:
        gone.cancel()


def _end_now(patience: asyncio.Timeout) -> None:
    with suppress(RuntimeError):  # it has already ended
        patience.reschedule(0.0)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _explained(serving: Serving, request: Request) -> Response:
    models, asking = serving.at_work()
    try:
        question = read_question(await request.body())
    except QuestionError as error:
        return error_response(422, str(error))
    served = models.by_name.get(question.run)
    if served is None:
        return _no_such_model(serving)
    try:
        check_length(question, serving.limits.characters, serving.limits.attention_cells)
        ServedRun(served.name, served.task).asked(question)
    except QuestionError as error:
        serving.metrics.rejected.labels("request").inc()
        return error_response(422, str(error))

    async def answered() -> Response:
        try:
            text = await asking.explain(served, question, request.state.client)
            return Response(text.encode(), media_type="application/json")
        except Exception as error:
            return _refusal(serving, error)

    return await _unless_gone(serving, request, answered())


def _refusal(serving: Serving, error: Exception) -> Response:
    """Return the error response. The log never contains the text of an input."""
    if isinstance(error, OverloadedError | ClosedError):
        reason = "overload" if isinstance(error, OverloadedError) else "draining"
        serving.metrics.rejected.labels(reason).inc()
        response = error_response(503, str(error))
        seconds = error.seconds if isinstance(error, OverloadedError) else 1
        response.headers["retry-after"] = str(seconds)
        return response
    if isinstance(error, LateError):
        serving.metrics.rejected.labels("deadline").inc()
        return error_response(504, str(error))
    if isinstance(error, TooLargeError):
        serving.metrics.rejected.labels("size").inc()
        return error_response(413, str(error))
    if isinstance(error, FovealError):
        return error_response(422, str(error))
    fault = str(error) if isinstance(error, FaultError) else failed(error).text
    _log.error("an answer failed: %s", fault)  # no traceback: it may quote the input
    return error_response(500, f"The server failed: {fault}. Please report it.")


def _asset(name: str) -> Response:
    asset = page_assets().get(name)
    if asset is None:
        return error_response(404, "This file does not exist.")
    return Response(asset.content, media_type=asset.media_type)


def _json(data: Any) -> Response:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return Response(text.encode(), media_type="application/json")
