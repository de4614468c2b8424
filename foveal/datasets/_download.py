"""Download one file over HTTPS. Plain HTTP is allowed on this machine only, and redirects to other machines are refused."""

import urllib.request
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

from typing_extensions import override

from ..errors import DataError, size_text

MAX_SIZE = 100_000_000  # bytes: the maximum size of a file in the catalog
_CHUNK = 1 << 16
_SECONDS = 30  # seconds to wait for an answer
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    @override
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(address: str) -> bytes:
    """Return the bytes at an address.

    Args:
        address: An https address, or http on this machine.

    Returns:
        The content of the file.

    Raises:
        DataError: There is no answer, or it is too large.
    """
    check_address(address)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        _SafeRedirects(),
    ):
        opener.add_handler(handler)
    try:
        with opener.open(address, timeout=_SECONDS) as reply:
            return _read(reply, address)
    except (URLError, HTTPException, TimeoutError, ConnectionError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise DataError(f"{address}: download failed ({reason}).") from None


def check_address(address: str) -> None:
    """Raise `DataError` unless an address is https, or http on this machine."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return
    raise DataError(
        f"{address}: expected an address that begins with https://. Nothing was downloaded."
    )


def _read(reply: HTTPResponse, address: str) -> bytes:
    data = bytearray()
    while chunk := reply.read(_CHUNK):
        data += chunk
        if len(data) > MAX_SIZE:
            raise DataError(f"{address}: more than {size_text(MAX_SIZE)}, expected a smaller file.")
    return bytes(data)
