"""A shortcut for prediction requests, past the router and the middleware.

Finding a route, its dependencies and its handler takes as long as all of our own code. The application still
contains the route, with the same handler, for the OpenAPI document.
"""

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias, final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

PREDICT = "/v1/models/{name}/predict"
_PATH = re.compile(PREDICT.replace("{name}", "([^/]+)"))
Predict: TypeAlias = Callable[[str, Request], Awaitable[Response]]


@final
class Direct:
    """An application that sends predictions to a handler, and all other requests to another application.

    Args:
        app: The other application.
        predict: The handler, by the name of a model.
    """

    def __init__(self, app: ASGIApp, *, predict: Predict) -> None:
        self._app, self._predict = app, predict

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and scope["method"] == "POST":
            found = _PATH.fullmatch(scope["path"])
            if found is not None:
                response = await self._predict(found[1], Request(scope, receive))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
