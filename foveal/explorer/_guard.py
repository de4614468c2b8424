"""The guard in front of the application: authentication, body limits, and security headers.

A foreign page can make a browser send requests to this machine, and with a name that points to 127.0.0.1 (DNS
rebinding) it could even read the answers. The guard therefore rejects a request unless its host is this
machine, and unless the page that sends it comes from here. Other users of the machine can reach the port too:
the address that the command prints contains a token, which the page keeps as a cookie.
"""

import asyncio
import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..web._http import HEADERS, error_response, host_name, read_body, replayed

# Any port: a port that ssh forwards differs from ours.
HOSTS = frozenset({"127.0.0.1", "localhost"})
MOST_BYTES = 256 * 1024  # per body: weights for some tens of steps of the longest input
BODY_SECONDS = 10.0  # time limit for a body
TOKEN = "token"  # in the address and as the cookie
_OPEN_FOLDER = "/assets/"  # public files of the package


class Guard:
    """An application that accepts only requests from this machine.

    Args:
        app: The application to guard.
        most_bytes: The maximum size of a body.
        token: The required token, if any.
        body_seconds: The time limit for a body.
    """

    def __init__(
        self,
        app: ASGIApp,
        most_bytes: int = MOST_BYTES,
        token: str = "",
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self._app, self._most_bytes = app, most_bytes
        self._token, self._body_seconds = token, body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        answered: ASGIApp | None = _stranger(headers)
        if answered is None and self._token:
            answered = self._unknown(scope, headers)
        if answered is not None:
            await answered(scope, receive, send_with_headers)
            return
        try:
            async with asyncio.timeout(self._body_seconds):
                body = await read_body(headers, receive, self._most_bytes)
        except TimeoutError:
            refusal = error_response(408, "The request body took too long to arrive.")
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, send_with_headers)
            return
        if body is None:
            await error_response(413, f"The body is longer than {self._most_bytes:,} bytes.")(
                scope, receive, send_with_headers
            )
            return
        await self._app(scope, replayed(body, receive), send_with_headers)

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """Answer a request without the cookie. If its address has the token, redirect to the same address without
        it, and set the cookie.
        """
        request = HTTPConnection(scope)
        if hmac.compare_digest(request.query_params.get(TOKEN, "").encode(), self._token.encode()):
            known = RedirectResponse(scope["path"], 303)
            known.set_cookie(_cookie(headers), self._token, httponly=True, samesite="strict")
            return known
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        shown = request.cookies.get(_cookie(headers), bearer)
        is_open = scope["path"].startswith(_OPEN_FOLDER)
        if is_open or hmac.compare_digest(shown.encode(), self._token.encode()):
            return None
        return error_response(
            401, "Open the address that `foveal explore` printed, including its token."
        )


def _cookie(headers: Headers) -> str:
    """Return the cookie name. Browsers share cookies between the ports of a host, and two explorers may run at once."""
    port = headers.get("host", "").rpartition(":")[2]
    return f"{TOKEN}-{port if port.isdecimal() else 'none'}"


def _stranger(headers: Headers) -> JSONResponse | None:
    """Reject a request that names another host or comes from a foreign page."""
    host = headers.get("host", "")
    if host_name(f"//{host}") not in HOSTS:
        return error_response(
            403,
            "The explorer accepts requests only at 127.0.0.1 or localhost. Use the printed address.",
        )
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return error_response(403, "The explorer accepts requests only from its own page.")
    return None
