"""The guard in front of the application: authentication, size and time limits, and security headers.

A foreign page can make a browser send requests to a server on this machine, and with a name that points to
127.0.0.1 (DNS rebinding) it could read the answers. The guard therefore accepts requests only from pages of
this server and, on the loopback interface, only for loopback host names.
"""

import asyncio
from collections.abc import Collection
from typing import final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...web._http import HEADERS, error_response, host_name, replayed
from .._limits import Limits
from ._bodies import Bodies, Body, FullError, GoneError, TooLongError, drain
from ._metrics import Metrics
from ._tokens import Tokens

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Paths without authentication: health checks, and the page, which asks for a token.
_OPEN = frozenset({"/", "/healthz", "/readyz"})
_OPEN_FOLDER = "/assets/"
_BUSY = 503
_GONE = 499  # the status that servers log for a client that disconnected
# The content type that curl sends by default, and the correct one.
_TYPES = frozenset({"", "application/json", "application/x-www-form-urlencoded"})
_PIECE = 1 << 16  # bytes of an answer to send at once; the reader sets the pace
# The server reads and discards this much of the body of a rejected request, for this many requests at once.
_MOST_DRAINED, _SECONDS_TO_DRAIN, _MOST_DRAINING = 16 << 20, 2.0, 8


@final
class Guard:
    """An application that accepts only authorized requests within the limits.

    Args:
        app: The application to guard.
        limits: The limits of bodies and times.
        tokens: The accepted bearer tokens, if any.
        hosts: The accepted host names; empty accepts any.
        metrics: The metrics that count rejected requests.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        tokens: Tokens,
        hosts: Collection[str],
        metrics: Metrics,
    ) -> None:
        self._app, self._limits, self._tokens = app, limits, tokens
        self._hosts, self._metrics = hosts, metrics
        self._bodies = Bodies(most=limits.bodies_bytes, longest=limits.body_bytes)
        self._num_draining = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        paced = self._paced(send)
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None:
            with self._bodies.reserved(scope["state"]["client"]) as reserved:
                body = await self._body(reserved, headers, receive)
                if isinstance(body, bytes):
                    await self._app(scope, replayed(body, receive), paced)
                    return
            refusal = body
        await self._turn_away(refusal, scope, receive, paced)

    async def _turn_away(
        self, refusal: Response, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Reject a request, and read some of its body: closing a connection while its client still sends resets it,
        and the client never sees the error.
        """
        if refusal.status_code == _BUSY or self._num_draining >= _MOST_DRAINING:
            await refusal(scope, receive, send)
            return
        self._num_draining += 1
        try:
            start = {"type": "http.response.start", "status": refusal.status_code}
            await send({**start, "headers": refusal.raw_headers})
            body = bytes(refusal.body)
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await drain(receive, most=_MOST_DRAINED, seconds=_SECONDS_TO_DRAIN)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._num_draining -= 1

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the error response for a forbidden request; an accepted request gets its client's name."""
        malformed = self._malformed(scope, headers)
        if malformed is not None:
            return malformed
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._hosts and host_name(f"//{host}") not in self._hosts:
            names = " or ".join(sorted(self._hosts))
            return self._refuse("host", 403, f"This server accepts requests only for {names}.")
        if origin is not None and origin.partition("://")[2] != host:
            return self._refuse(
                "origin", 403, "This server accepts requests only from its own page."
            )
        peer = scope.get("client")
        client = peer[0] if peer else "unknown"
        path = scope["path"]
        if self._tokens and path not in _OPEN and not path.startswith(_OPEN_FOLDER):
            client = self._tokens.client(headers.get("authorization", ""))
            if client is None:
                refusal = self._refuse(
                    "token",
                    401,
                    "A token is required: Authorization: Bearer TOKEN. Ask the operator of the server for one.",
                )
                refusal.headers["www-authenticate"] = "Bearer"
                return refusal
        scope.setdefault("state", {})["client"] = client
        if scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in _TYPES or headers.get("content-encoding", "identity") != "identity":
                return self._refuse(
                    "type", 415, "Expected a body of type application/json, without compression."
                )
        return None

    def _malformed(self, scope: Scope, headers: Headers) -> Response | None:
        """Reject a head that is too large, or that two servers may parse differently."""
        size = len(scope["query_string"]) + len(scope.get("raw_path") or b"")
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > self._limits.head_bytes or len(scope["headers"]) > self._limits.head_fields:
            return self._refuse(
                "head", 431, "The head of the request is too large. Send fewer fields."
            )
        if "content-length" in headers and "transfer-encoding" in headers:
            return self._refuse("head", 400, "Send Content-Length or Transfer-Encoding, not both.")
        return None

    async def _body(self, body: Body, headers: Headers, receive: Receive) -> bytes | Response:
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await body.read(headers, receive)
        except TimeoutError:
            return self._refuse(
                "slow", 408, "The request body took too long to arrive. Send it at once."
            )
        except GoneError:
            return Response(status_code=_GONE)
        except TooLongError:
            most = self._limits.body_bytes
            return self._refuse(
                "size", 413, f"The body is longer than {most:,} bytes. Send several requests."
            )
        except FullError:
            refusal = self._refuse(
                "bodies", 503, "Too many request bodies at once. Retry in a second."
            )
            refusal.headers["retry-after"] = "1"
            return refusal

    def _refuse(self, reason: str, status: int, text: str) -> Response:
        self._metrics.rejected.labels(reason).inc()
        response = error_response(status, text)
        response.headers["connection"] = "close"  # the rest of the body is not worth reading
        return response

    def _paced(self, send: Send) -> Send:
        """Send at the pace of the reader, and give up on a reader that stalls."""
        waiting = list[Message]()  # the head of an answer, sent with the first part of its body

        async def paced(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
                waiting.append(message)
                return
            body = message.get("body", b"")
            for start in range(0, max(1, len(body)), _PIECE):
                is_last = start + _PIECE >= len(body)
                more = not is_last or message.get("more_body", False)
                piece = {**message, "body": body[start : start + _PIECE], "more_body": more}
                async with asyncio.timeout(self._limits.answer_seconds):
                    for part in (*waiting, piece):
                        await send(part)
                waiting.clear()

        return paced
