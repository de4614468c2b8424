"""The way of the one request that is asked all the time: past the router and what comes before it.

Finding a route, its dependencies and its handler takes as long as all that is ours. The route stands in the
application all the same, for the OpenAPI document, and has the same handler.
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
    """An application whose predictions are asked of a handler, and all else of another application.

    Args:
        app: the other one.
        predict: the handler, by the name of a model.
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
