"""Shared code of both clients: requests, answers and retries.

A prediction changes nothing on the server, so the client retries a request without an answer: the server was
busy (503, after the delay that it requests) or shutting down, the connection broke, or a proxy in between, such as
the proxy of a cluster, lost its server. Delays double with each attempt, with random jitter.
"""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, final
from urllib.parse import quote

import httpx2 as httpx

from ...errors import FovealError, ValueRangeError
from ._answers import Answer, Model, ServerError

_BUSY = 503
_FAULTS = range(500, 600)
_FIRST_DELAY, _MOST_DELAY = 0.1, 10.0
_MOST_DIGITS = 10  # in a number of seconds
MOST_BYTES = 256 << 20  # per answer; the longest answers of our server take tens of megabytes
_FIELDS = tuple(one.name for one in fields(Model))


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """The maximum number of attempts, and their total time."""

    attempts: int = 5
    seconds: float = 30.0


class Reply(NamedTuple):
    """The response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TooLongError(Exception):
    """Raised for a response that is compressed, or longer than any response of our server."""


@final
@dataclass(slots=True)
class Trying:
    """One request in progress: counts attempts and time."""

    retries: Retries
    began: float = field(default_factory=time.monotonic)
    attempts: int = 0

    def delay(self, reply: Reply | None, error: Exception | None) -> float:
        """Return the seconds to wait before the next attempt; raises the error if there is none."""
        self.attempts += 1
        asked = 0.0 if reply is None else _retry_after(reply.headers)
        backoff = min(_MOST_DELAY, _FIRST_DELAY * 2 ** (self.attempts - 1))
        delay = max(asked, backoff) * random.uniform(1.0, 1.5)
        left = self.retries.seconds - (time.monotonic() - self.began)
        if isinstance(
            error, TooLongError | httpx.LocalProtocolError
        ):  # a retry would fail the same way
            raise ServerError(
                f"The response is longer than {MOST_BYTES:,} bytes, compressed, or the request failed "
                f"({type(error).__name__}). Check the address."
            ) from error
        if self.attempts < self.retries.attempts and delay <= left:
            return delay
        if reply is not None:
            raise refusal(reply)
        raise ServerError(
            f"The server did not respond in {self.attempts} attempts: {type(error).__name__}. Check "
            f"that it is running, and the address."
        ) from error


def is_passing(reply: Reply) -> bool:
    """Return whether to retry: the server is busy, or its answer was lost on the way and the error has no message
    from the server. An internal error with a message would happen again.
    """
    return reply.status == _BUSY or (reply.status in _FAULTS and _said(reply) is None)


def body_of(
    inputs: Sequence[str],
    *,
    features: Sequence[str] | None,
    nbest: int,
    attention: bool,
    confidence: bool,
    deadline: float | None,
) -> bytes:
    """Return the body of a request; the deadline is in seconds."""
    if isinstance(inputs, str):
        raise ValueRangeError(
            f"predict: inputs must be a list of texts, got one text, {inputs[:40]!r}. "
            f"Put it into a list: [{inputs[:40]!r}]."
        )
    data: dict[str, Any] = {"inputs": list(inputs), "nbest": nbest}
    data |= {"attention": attention, "confidence": confidence}
    if features is not None:
        data["features"] = list(features)
    if deadline is not None:
        data["deadline_ms"] = max(1, round(1000 * deadline))
    return json.dumps(data).encode()


def path_of(model: str) -> str:
    """Return the URL path of a model."""
    return f"/v1/models/{quote(model, safe='')}/predict"


def headers_of(token: str | None) -> dict[str, str]:
    """Return the header fields of every request."""
    # Reject compressed answers: a few bytes may decompress to any size.
    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    if token is None:
        return headers
    if not token or not token.isascii() or not token.isprintable():
        raise ValueRangeError(
            "Client: a token must consist of printable ASCII characters without line breaks, got "
            "other characters. Remove them, for example the line break at the end of a file: "
            "token.strip()."
        )
    return headers | {"authorization": f"Bearer {token}"}


@final
class Received:
    """The body of a response, read in parts; raises `TooLongError` as soon as it is too long."""

    def __init__(self, response: httpx.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise TooLongError
        self._response, self._parts, self._size = response, list[bytes](), 0

    def add(self, part: bytes) -> None:
        """Add the next part."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > MOST_BYTES:
            raise TooLongError

    @property
    def reply(self) -> Reply:
        """Return the complete response."""
        return Reply(self._response.status_code, self._response.headers, b"".join(self._parts))


def answers_of(reply: Reply) -> list[Answer]:
    """Return the answers to a request, in the order of its inputs."""
    with _readable():
        return [Answer.from_data(one) for one in _checked(reply)["answers"]]


def models_of(reply: Reply) -> list[Model]:
    """Return the models of the server; fields that a newer server adds are ignored."""
    with _readable():
        return [
            Model(**{name: one[name] for name in _FIELDS if name in one})
            for one in _checked(reply)["models"]
        ]


@contextmanager
def _readable() -> Iterator[None]:
    """Convert any error in parsing a response to the client's error."""
    try:
        yield
    except ServerError:
        raise
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        FovealError,
    ) as error:
        raise ServerError(
            f"The response is not from a Foveal server: {type(error).__name__}. Check the address."
        ) from error


def refusal(reply: Reply) -> ServerError:
    """Return the error for a rejected request."""
    said = _said(reply) or "no reason given"
    return ServerError(f"The server refused with {reply.status}: {said}", reply.status)


def _said(reply: Reply) -> str | None:
    """Return the error message of our server; empty for any other server."""
    try:
        return str(json.loads(reply.body)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _checked(reply: Reply) -> Any:
    if reply.status != 200:
        raise refusal(reply)
    return json.loads(reply.body)


def _retry_after(headers: Mapping[str, str]) -> float:
    said = headers.get("retry-after", "")
    return float(said) if said.isdecimal() and len(said) < _MOST_DIGITS else 0.0
