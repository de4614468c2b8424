"""The results and the errors of the clients."""

import json
from dataclasses import dataclass
from typing import Any

from ...attention import AttentionTrace
from ...errors import FovealError
from ...tasks.base._prediction import Candidate


class ServerError(FovealError, RuntimeError):
    """Raised if the server rejects a request or is unreachable; `status` is the HTTP status, None without a
    response.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one input; fields that were not requested are None or empty."""

    source: str
    output: str
    score: float | None = None
    confidence: float | None = None
    token_probabilities: tuple[float, ...] = ()
    nbest: tuple[Candidate, ...] = ()
    attention: AttentionTrace | None = None

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "Answer":
        """Parse an answer of the server."""
        trace = data.get("attention")
        nan = float("nan")  # for candidates without scores
        return cls(
            source=data["source"],
            output=data["output"],
            score=data.get("score"),
            confidence=data.get("confidence"),
            token_probabilities=tuple(data.get("token_probabilities") or ()),
            nbest=tuple(
                Candidate(one["output"], one.get("score", nan), one.get("probability", nan))
                for one in data.get("nbest") or ()
            ),
            attention=None if trace is None else AttentionTrace.from_json(json.dumps(trace)),
        )


@dataclass(frozen=True, slots=True)
class Model:
    """A model on the server."""

    name: str
    version: str
    task: str
    features: bool
    exact: bool
    refused: str | None = None
