"""The request and response models of the OpenAPI document."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...web._question import said
from .._limits import Limits


class RequestError(ValueError):
    """Raised for an invalid body; the message is one line."""


class PredictRequest(BaseModel):
    """Inputs to a model, and the requested outputs."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        json_schema_extra={
            "examples": [
                {"inputs": ["reykjavík"]},
                {"inputs": ["reykjavík", "jökull"], "nbest": 3, "attention": True},
                {"inputs": ["ganga"], "features": ["V;PST"], "deadline_ms": 500, "stream": True},
            ]
        },
    )

    inputs: Annotated[list[str], Field(min_length=1, description="input texts")]
    features: Annotated[
        list[str] | None,
        Field(description="one for each input, for a model that reads features, such as V;PST"),
    ] = None
    nbest: Annotated[
        int, Field(ge=1, description="number of candidates for each input, best first")
    ] = 1
    attention: Annotated[bool, Field(description="return the attention for every output token")] = (
        False
    )
    confidence: Annotated[bool, Field(description="return scores and probabilities")] = True
    deadline_ms: Annotated[int | None, Field(ge=1, description="deadline in milliseconds")] = None
    stream: Annotated[bool, Field(description="stream the answers as JSON lines, in order")] = False

    @model_validator(mode="after")
    def _as_many(self) -> "PredictRequest":
        if self.features is not None and len(self.features) != len(self.inputs):
            raise ValueError(
                f"{len(self.features)} features for {len(self.inputs)} inputs, expected equal numbers"
            )
        return self


def read_request(body: bytes, limits: Limits) -> PredictRequest:
    """Parse a body within the limits."""
    try:
        request = PredictRequest.model_validate_json(body)
    except ValidationError as error:
        raise RequestError(said(error.errors(include_input=False, include_url=False)[0])) from None
    texts = [*request.inputs, *(request.features or [])]
    longest = max(map(len, texts))
    cells = sum(len(text) ** 2 for text in request.inputs) if request.attention else 0
    checks = (
        ("inputs", len(request.inputs), limits.inputs, "Send them in several requests."),
        (
            "characters of an input",
            longest,
            limits.characters,
            "Split it, for example into sentences.",
        ),
        ("nbest", request.nbest, limits.nbest, "Ask for fewer."),
        ("squared characters with attention", cells, limits.attention_cells, "Send fewer at once."),
    )
    for what, got, most, advice in checks:
        if got > most:
            raise RequestError(f"{what}: expected at most {most}, got {got}. {advice}")
    return request


class CandidateAnswer(BaseModel):
    """One output of an n-best list."""

    output: str
    score: float | None = None
    probability: float | None = None


class Answer(BaseModel):
    """The answer to one input, as `foveal predict --format jsonl` prints it."""

    source: str
    output: str
    score: float | None = None
    confidence: Annotated[
        float | None, Field(description="the calibrated probability that the output is correct")
    ] = None
    token_probabilities: list[float] | None = None
    nbest: list[CandidateAnswer] | None = None
    attention: Annotated[
        dict[str, Any] | None, Field(description="sources, targets and the weights between them")
    ] = None


class PredictAnswer(BaseModel):
    """Answers in the order of the inputs."""

    model: str
    version: Annotated[str, Field(description="of the model's files")]
    answers: list[Answer]


class ModelAnswer(BaseModel):
    """A model that answers requests."""

    name: str
    version: str
    task: str
    features: Annotated[bool, Field(description="whether it reads features in addition to inputs")]
    exact: Annotated[
        bool, Field(description="whether answers are bit-identical in any batch on this machine")
    ]
    refused: Annotated[
        str | None, Field(description="the reason why a newer version in its folder is not served")
    ] = None


class ModelsAnswer(BaseModel):
    """All models."""

    models: list[ModelAnswer]


class StateAnswer(BaseModel):
    """The liveness or the readiness of the server."""

    state: str


class ErrorAnswer(BaseModel):
    """An error message with the problem and the remedy."""

    error: str
