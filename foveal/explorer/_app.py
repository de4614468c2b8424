"""The application: the page, and its one API call.

    POST /api/explain {run, input, picture?, features?, prefix?, forced?} -> Explanation.to_data()

Models answer one at a time, in a separate thread, which keeps the event loop free. The page drops a request
when the next key is pressed; a dropped request is not answered.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from torch import set_num_threads

from ..errors import FovealError
from ..inspection import explain
from ..web._assets import PAGE, Asset, assets
from ..web._http import error_response
from ..web._question import MOST_PICTURE, Question, QuestionError, read_question
from ..web._runs import ServedRun
from ._guard import MOST_BYTES, Guard

_GONE = 499  # the status that servers log for a client that disconnected
_UNKNOWN_RUN, _WRONG_TYPE, _WRONG, _FAILED = 404, 415, 400, 500

_log = logging.getLogger(__name__)


class _Answering:
    """The runs, and the one thread that computes their answers."""

    def __init__(self, runs: Sequence[ServedRun]) -> None:
        self.runs: Mapping[str, ServedRun] = {run.name: run for run in runs}
        # The steps of one input are too small to parallelize: threads that wait for each other made answers 17 times
        # slower on a busy machine with two cores.
        self._thread = ThreadPoolExecutor(1, "explain", initializer=partial(set_num_threads, 1))
        self._turn = asyncio.Lock()

    async def respond(self, request: Request) -> Response:
        """Answer a request, or return a one-line error."""
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return error_response(_WRONG_TYPE, "Expected a body of type application/json.")
        try:
            question = read_question(await request.body())
        except QuestionError as error:
            return error_response(_WRONG, str(error))
        run = self.runs.get(question.run)
        if run is None:
            names = ", ".join(self.runs)
            return error_response(_UNKNOWN_RUN, f"Unknown run. Runs: {names}.")
        async with self._turn:
            if await request.is_disconnected():
                return Response(status_code=_GONE)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, _answer, run, question)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(cancel_futures=True)


def build_app(runs: Sequence[ServedRun], *, token: str = "") -> FastAPI:
    """Return the application for some runs. The runs compute nothing before the first request.

    Args:
        runs: Runs to offer on the page.
        token: Required token: the application answers only browsers that opened `/?token=...`. An empty token allows
            all.

    Returns:
        The application, to serve with an ASGI server.
    """
    answering = _Answering(runs)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        yield
        answering.close()

    app = FastAPI(
        title="Foveal explorer",
        lifespan=lifespan,
        # FastAPI's documentation pages load scripts from other hosts.
        openapi_url=None,
        # No input leaves the process, for any environment variables.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    most = MOST_BYTES + MOST_PICTURE * any(run.sees for run in runs)
    app.add_middleware(Guard, most_bytes=most, token=token)

    @app.exception_handler(HTTPException)
    async def refuse(request: Request, error: HTTPException) -> Response:
        del request
        return error_response(error.status_code, str(error.detail))

    @app.get("/")
    async def page() -> Response:
        return _served(assets()[PAGE])

    @app.get("/assets/{name}")
    async def asset(name: str) -> Response:
        if name not in assets():
            raise HTTPException(404)
        return _served(assets()[name])

    @app.get("/api/runs")
    async def described() -> Response:
        return _json([run.to_data() for run in runs])

    @app.post("/api/explain")
    async def explained(request: Request) -> Response:
        return await answering.respond(request)

    return app


def _answer(run: ServedRun, question: Question) -> Response:
    """Compute the answer of a run. Any error becomes one line for the page; the log never contains the input."""
    try:
        example = run.asked(question)
        found = explain(run.task, example, prefix=question.prefix, forced=question.forced)
        return _json(found.to_data())
    except (FovealError, QuestionError) as error:
        return error_response(_WRONG, str(error))
    except Exception as error:  # our own bug: the server keeps running
        place = extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
        _log.error("an answer failed: %s", fault)  # no traceback: it may quote the input
        return error_response(_FAILED, f"The explorer failed: {fault}. Please report it.")


def _json(data: Any) -> Response:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), media_type="application/json")


def _served(asset: Asset) -> Response:
    return Response(asset.content, media_type=asset.media_type)
