"""HTTP as every server of the package speaks it: headers of answers, errors, bodies."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Message, Receive

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",  # what was typed stays out of the browser's files
}


def error_response(status: int, text: str) -> JSONResponse:
    """An error as the page shows it: one line."""
    return JSONResponse({"error": " ".join(text.split())}, status)


def host_name(address: str) -> str | None:
    """The host in an address such as "//localhost:8000", or None if it is malformed."""
    try:
        return urlsplit(address).hostname
    except ValueError:  # such as a bracket that is not closed
        return None


async def read_body(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """All of the body, or None as soon as it is seen to have more bytes than that."""
    said = headers.get("content-length", "0")
    # Of a number with more digits than that, Python would refuse to make one.
    if said.isdecimal() and (len(said) > 20 or int(said) > most):
        return None
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the asker has gone
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body, then whatever comes after it."""
    is_sent = False

    async def received() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received
