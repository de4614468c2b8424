"""What both clients have in common: requests, answers, and when to try again.

A prediction changes nothing on the server, so that one which got no answer may be asked again: when the
server had too much to do (503, after as long as it says), was about to end, the connection broke, or what
stands between, such as the proxy of a cluster, lost the server that it had asked. Delays grow by twos, and
chance spreads those who were refused together.
"""

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final
from urllib.parse import quote

import httpx2 as httpx

from ...errors import ValueRangeError
from ._answers import Answer, Model, ServerError

_BUSY = 503
_FAULTS = range(500, 600)
_FIRST_DELAY, _MOST_DELAY = 0.1, 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """How often, and for how long in all, a request is tried."""

    attempts: int = 5
    seconds: float = 30.0


@final
@dataclass(slots=True)
class Trying:
    """One request on its way: counts attempts and time."""

    retries: Retries
    began: float = field(default_factory=time.monotonic)
    attempts: int = 0

    def delay(self, response: httpx.Response | None, error: httpx.TransportError | None) -> float:
        """Seconds to wait before the next attempt; raises where there is to be none."""
        self.attempts += 1
        asked = 0.0 if response is None else _retry_after(response.headers)
        backoff = min(_MOST_DELAY, _FIRST_DELAY * 2 ** (self.attempts - 1))
        delay = max(asked, backoff) * random.uniform(1.0, 1.5)
        left = self.retries.seconds - (time.monotonic() - self.began)
        if self.attempts < self.retries.attempts and delay <= left:
            return delay
        if response is not None:
            raise refusal(response)
        raise ServerError(
            f"The server gave no answer in {self.attempts} attempts: {type(error).__name__}. "
            f"Is it running, and is the address right?"
        ) from error


def is_passing(response: httpx.Response) -> bool:
    """Whether to ask again later: the server is busy, or its answer was lost on the way, in which case there
    is a fault without a word from the server. A fault of its own, with its words, would come again.
    """
    status = response.status_code
    return status == _BUSY or (status in _FAULTS and _said(response) is None)


def body_of(
    inputs: Sequence[str],
    *,
    features: Sequence[str] | None,
    nbest: int,
    attention: bool,
    confidence: bool,
    deadline: float | None,
) -> bytes:
    """The body of a request; the deadline is in seconds."""
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
    """Where a model is asked."""
    return f"/v1/models/{quote(model, safe='')}/predict"


def headers_of(token: str | None) -> dict[str, str]:
    """What every request says."""
    headers = {"content-type": "application/json"}
    return headers if token is None else headers | {"authorization": f"Bearer {token}"}


def answers_of(response: httpx.Response) -> list[Answer]:
    """The answers to a request, in the order of its inputs."""
    return [Answer.from_data(one) for one in _checked(response)["answers"]]


def models_of(response: httpx.Response) -> list[Model]:
    """What is served."""
    return [Model(**one) for one in _checked(response)["models"]]


def refusal(response: httpx.Response) -> ServerError:
    """What a server that refused has said."""
    said = _said(response) or "no reason was given"
    return ServerError(
        f"The server refused with {response.status_code}: {said}", response.status_code
    )


def _said(response: httpx.Response) -> str | None:
    """The words of a server of ours, and of no other."""
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return None


def _checked(response: httpx.Response) -> Any:
    if response.status_code != 200:
        raise refusal(response)
    return response.json()


def _retry_after(headers: Mapping[str, str]) -> float:
    said = headers.get("retry-after", "")
    return float(said) if said.isdecimal() else 0.0
