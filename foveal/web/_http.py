"""HTTP helpers of every server in the package: response headers, errors, bodies."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",  # keeps the user's input out of the browser cache
}


def error_response(status: int, text: str) -> JSONResponse:
    """Return an error response with one line of text, as the page shows it."""
    return JSONResponse({"error": " ".join(text.split())}, status)


def host_name(address: str) -> str | None:
    """Return the host in an address such as "//localhost:8000", or None if it is malformed."""
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as an unclosed bracket
        return None


async def read_body(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """Read the whole body, or return None as soon as it exceeds the limit."""
    said = headers.get("content-length", "0")
    # Python refuses to convert longer digit strings to a number.
    if said.isdecimal() and (len(said) > 20 or int(said) > most):
        return None
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the client disconnected
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Replay the body to the application, then forward all later messages."""
    is_sent = False

    async def received() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received
